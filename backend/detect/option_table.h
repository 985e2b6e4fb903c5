// The table of the detector's options: what `straggler rescore` and `torch_straggler.rescore()` take.
#pragma once

#include <span>

#include "backend/base/fields.h"
#include "backend/detect/detector.h"

namespace straggler {

std::span<const Field<DetectorOptions>> detectorFields();

}  // namespace straggler
