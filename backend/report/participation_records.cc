#include "backend/report/participation_records.h"

#include "backend/base/json.h"
#include "backend/report/json_records.h"

namespace straggler {
namespace {

const char* kindName(SlotOperation::Kind kind) {
  return kind == SlotOperation::Kind::kAllReduce ? "all_reduce" : "broadcast";
}

}  // namespace

std::string participationStart(int rank, int worldSize, MitigationMode mode, std::uint64_t staleness) {
  JsonLine line;
  line.field("schema", kRecordSchema)
      .field("type", "participation_start")
      .field("rank", rank)
      .field("world_size", worldSize)
      .field("mode", mode == MitigationMode::kCarry ? "carry" : "drop")
      .field("staleness", staleness);
  return line.text();
}

std::string toJson(int rank, const Participation& participation) {
  const SlotOperation& operation = participation.operation;
  JsonLine line;
  line.field("schema", kRecordSchema)
      .field("type", "participation")
      .field("rank", rank)
      .field("slot", participation.slot)
      .field("reached", participation.reached)
      .field("kind", kindName(operation.kind))
      .field("bucket", operation.bucket)
      .field("root", operation.root)
      .field("reduction", operation.reduction)
      .field("dtype", operation.dtype)
      .field("elements", operation.elements)
      .field("bytes", operation.bytes)
      .field("scale", operation.scale);
  return line.text();
}

}  // namespace straggler
