// The functions of libnvidia-ml.so.1 that are asked for, with the driver's names.
#include "tests/fakes/fake_nvml.h"

using straggler::FakeNvml;

// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

FakeNvml fakeNvml;

struct nvmlProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};

int nvmlInit_v2() {
  fakeNvml.begun += fakeNvml.initError == 0 ? 1 : 0;
  return fakeNvml.initError;
}
int nvmlShutdown() {
  --fakeNvml.begun;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = fakeNvml.devices;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, FakeNvml::Device** device) {
  *device = &fakeNvml.device[index];
  return 0;
}
int nvmlDeviceGetMinorNumber(FakeNvml::Device* device, unsigned* number) {
  *number = device->minorNumber;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(FakeNvml::Device* device, unsigned* count, nvmlProcessInfo* infos) {
  *count = device->processId == 0 ? 0 : 2;
  infos[0] = {1, 0, 0, 0};
  infos[1] = {device->processId, 0, 0, 0};
  return 0;
}
int nvmlDeviceGetClockInfo(FakeNvml::Device* device, int type, unsigned* clock) {
  *clock = type == 1 ? device->smClockMhz : 0;
  return fakeNvml.error;
}
int nvmlDeviceGetTemperature(FakeNvml::Device* device, int sensor, unsigned* temperature) {
  *temperature = sensor == 0 ? device->temperatureC : 0;
  return fakeNvml.error;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(FakeNvml::Device* device, unsigned long long* reasons) {
  *reasons = device->reasons;
  return fakeNvml.error;
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
