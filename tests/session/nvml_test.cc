// Against a library that stands for the driver's, and without one. No real device: tests/gpu is for that.
#include "backend/session/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakes/fake_nvml.h"
#include "tests/fakes/proc_tree.h"

namespace straggler {
namespace {

class NvmlTest : public testing::Test {
 protected:
  NvmlTest() : fake_(*static_cast<FakeNvml*>(dlsym(dlopen(STRAGGLER_FAKE_NVML, RTLD_NOW), "fakeNvml"))) {
    fake_ = {};
    fake_.devices = 2;
    fake_.device[0] = {.minorNumber = 3, .processId = 77, .smClockMhz = 1980, .temperatureC = 61};
    fake_.device[1] = {.minorNumber = 5, .processId = 0, .smClockMhz = 1200, .temperatureC = 86, .reasons = 0x40};
    tree_.write("/dev/nvidiactl", "");
    tree_.write("/proc/self/fd/0", "");
  }
  void hold(int descriptor, const std::string& node) {
    std::filesystem::create_symlink(node, tree_.root() + "/proc/self/fd/" + std::to_string(descriptor));
  }
  // As a process finds it that begins now.
  DeviceState state(const std::string& library = STRAGGLER_FAKE_NVML) {
    Nvml nvml(tree_.root(), library);
    nvml.findDevice();
    return nvml.state();
  }

  FakeNvml& fake_;
  ProcTree tree_;
};

TEST_F(NvmlTest, deviceThatTheProcessHoldsIsTheOne) {
  hold(4, "/dev/nvidiactl");
  hold(7, "/dev/nvidia-uvm");
  hold(9, "/dev/nvidia5");
  hold(10, "/dev/nvidia5");
  EXPECT_EQ(state(), (DeviceState{1200, 86, true, false}));
}

TEST_F(NvmlTest, ofSeveralItIsTheOneOnWhichTheProcessRuns) {
  hold(8, "/dev/nvidia3");
  hold(9, "/dev/nvidia5");
  EXPECT_EQ(state(), DeviceState{}) << "on neither, by its id: it is not known which";
  fake_.device[0].processId = static_cast<unsigned>(getpid());
  EXPECT_EQ(state(), (DeviceState{1980, 61, false, false}));
  fake_.device[1].processId = static_cast<unsigned>(getpid());
  EXPECT_EQ(state(), DeviceState{}) << "on both";
}

TEST_F(NvmlTest, processWithoutADeviceAsksNothing) {
  EXPECT_EQ(state(), DeviceState{});
  hold(9, "/dev/nvidia5");
  tree_.remove("/dev/nvidiactl");
  EXPECT_EQ(state(), DeviceState{});
  EXPECT_EQ(fake_.begun, 0);
}

TEST_F(NvmlTest, deviceThatIsHeldLaterIsFoundLater) {
  Nvml nvml(tree_.root(), STRAGGLER_FAKE_NVML);
  nvml.findDevice();
  EXPECT_EQ(nvml.state(), DeviceState{});
  hold(9, "/dev/nvidia3");
  nvml.findDevice();
  EXPECT_EQ(nvml.state().smClockMhz, 1980U);
  EXPECT_EQ(fake_.begun, 1);
}

TEST_F(NvmlTest, whatIsBegunIsEnded) {
  hold(9, "/dev/nvidia3");
  EXPECT_EQ(state().smClockMhz, 1980U);
  EXPECT_EQ(fake_.begun, 0);
}

TEST_F(NvmlTest, powerCapAndHeatAreToldApart) {
  hold(9, "/dev/nvidia3");
  fake_.device[0].reasons = 0x4 | 0x1;  // at its power cap; idle
  EXPECT_EQ(state(), (DeviceState{1980, 61, false, true}));
}

TEST_F(NvmlTest, whatTheLibraryRefusesIsAbsent) {
  hold(9, "/dev/nvidia3");
  fake_.error = 3;  // not supported
  EXPECT_EQ(state(), DeviceState{});
  fake_.error = 0;
  fake_.initError = 9;  // the driver is not loaded
  EXPECT_EQ(state(), DeviceState{});
}

TEST_F(NvmlTest, libraryThatIsNotThereOrIsAnotherIsNone) {
  hold(9, "/dev/nvidia3");
  EXPECT_EQ(state("libthere-is-none.so.1"), DeviceState{});
  EXPECT_EQ(state("libm.so.6"), DeviceState{});
}

}  // namespace
}  // namespace straggler
