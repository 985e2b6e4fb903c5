// Which torch this is compiled against, as one number: 215 for 2.15. One source tree serves 2.11 to 2.15.
//
// What came when: 2.13 suspend, resume, getMemoryStats; 2.14 the `*_single` names, addEphemeralTimeout, reconfigure,
// windows, abort hooks, and a virtual getBoundDeviceId; 2.15 isInitialized, time estimates, completion hooks.
#pragma once

#include <torch/version.h>

#define STRAGGLER_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

#if STRAGGLER_TORCH < 211 || STRAGGLER_TORCH > 215
#error "torch_straggler is written for torch 2.11 to 2.15; install one of these: pip install 'torch>=2.11,<2.16'"
#endif
