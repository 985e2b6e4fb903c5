#include "backend/session/monitor.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "backend/exchange/codec.h"
#include "backend/report/json_records.h"

namespace straggler {
namespace {

constexpr std::size_t kBatch = 512;
constexpr Duration kRatePeriod = std::chrono::seconds(1);
constexpr std::size_t kMaxSamplesWaiting = 128;  // two seconds' worth; more come in only before the rate is known
constexpr std::size_t kMessagesPerFrame = 16;    // far below the codec's limit on bytes

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(duration).count()));
}

// What can be lost without losing more than itself: the root can compare nothing of a rank that it does not know, nor of a
// group.
bool isSummary(const Message& message) {
  return !std::holds_alternative<RankHello>(message) && !std::holds_alternative<GroupInfo>(message) &&
         !std::holds_alternative<RankProgram>(message);
}

}  // namespace

// SplitMix64's finaliser: every bit of the key reaches the low bits.
bool isSampled(const OpKey& key, std::uint32_t sampling) {
  std::uint64_t hash = (static_cast<std::uint64_t>(key.group) << 32U) ^ key.sequence;
  hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
  hash ^= hash >> 31U;
  return (hash & (sampling - 1)) == 0;
}

std::uint32_t thinning(double rate, double limit) {
  std::uint32_t factor = 1;
  while (rate / factor > limit && factor < (1U << 20U)) {
    factor *= 2;
  }
  return factor;
}

Monitor::Monitor(Options options, std::shared_ptr<Recorder> recorder)
    : options_(std::move(options)), recorder_(std::move(recorder)) {
  if (options_.clock != nullptr && options_.exchange) {
    listener_.emplace(options_.rank, *options_.clock, options_.clockPeriod);
  }
  queue(options_.hello);
}

void Monitor::addGroup(const GroupInfo& group) {
  recorder_->addGroup(group.id());
  const MutexLock lock(groupsMutex_);
  groups_[group.id()] = group;
  if (!group.ranks.empty() && group.ranks.front() == options_.rank) {
    newGroups_.push_back(group);
  }
}

void Monitor::round(Instant now) {
  read(now);
  tellMitigation(now);
  hearBeat(now);
  if (!lastSend_ || now - *lastSend_ >= kSendPeriod) {
    if (!lastCounters_ || now - *lastCounters_ >= kCountersPeriod) {
      lastCounters_ = now;
      queue(counters(false));
    }
    send(now);
    if (options_.operations) {
      options_.operations->flush();
    }
  }
}

bool Monitor::finish(Instant now) {
  if (!finalQueued_) {
    finishing_ = finishing_.value_or(now);
    read(now);
    if (recorder_->awaitsCompletion() && now - *finishing_ < kCompletionPatience) {
      return false;
    }
    batch_.clear();
    recorder_->drainAll(batch_);
    processBatch();
    if (const auto last = finder_.finish()) {
      closeStep(*last);
    }
    closeWindow();
    if (options_.operations) {
      options_.operations->flush();
    }
    queueFinal();
    finalQueued_ = true;
  }
  return send(now);
}

// ---- Reading ----

void Monitor::read(Instant now) {
  do {
    batch_.clear();
    recorder_->drain(batch_, kBatch);
    processBatch();
  } while (batch_.size() == kBatch);
  adjustThinning(now);
}

// The fetches are taken after the operations, and used before them: a step that one of the operations ends has all its
// fetches then.
void Monitor::processBatch() {
  fetches_.clear();
  recorder_->drainFetches(fetches_);
  for (const auto& fetch : fetches_) {
    selfTime_.addFetch(fetch);
  }
  for (const auto& operation : batch_) {
    process(operation);
  }
}

void Monitor::process(const Operation& operation) {
  if (const auto ended = finder_.add(operation)) {
    closeStep(*ended);
  }
  selfTime_.add(operation);
  if (operation.trainingThread && uses_.size() < kMaxUses) {
    uses_.insert({operation.key.group, operation.key.kind});
  }
  if (isNumbered(operation.key.kind)) {
    ++operationsRead_;
    if (!operation.failed && isSampled(operation.key, samples_.sampling) &&
        samples_.operations.size() < kMaxSamplesWaiting) {
      const bool completed = operation.completed.known();
      samples_.operations.push_back(
          {operation.key, operation.arrival.time, completed ? std::optional(operation.completed.time) : std::nullopt,
           operation.arrival.source == StampSource::kDeviceEvent, sizeClassOf(operation.bytes)});
    }
  }
  if (options_.operations) {
    options_.operations->line(recordOf(operation));
  }
}

// The lock is not held while the disk is written: addGroup() waits for it on the training thread.
std::string Monitor::recordOf(const Operation& operation) {
  const MutexLock lock(groupsMutex_);
  return toJson(options_.rank, groups_[operation.key.group], operation);
}

void Monitor::closeStep(const StepEnd& step) {
  const StepTime time = selfTime_.close(step.begin, step.end);
  if (step.index % options_.window == 0 && !window_.selfUs.empty()) {
    closeWindow();
  }
  if (window_.selfUs.empty()) {
    window_.firstStep = step.index;
    windowLength_ = windowInput_ = {};
  }
  window_.selfUs.push_back(static_cast<std::uint32_t>(
      std::min<std::uint64_t>(microseconds(time.self), std::numeric_limits<std::uint32_t>::max())));
  windowLength_ += time.self + time.wait;
  windowInput_ += time.input;
  if ((step.index + 1) % options_.window == 0) {
    closeWindow();
  }
}

void Monitor::closeWindow() {
  if (window_.selfUs.empty()) {
    return;
  }
  ++windowsClosed_;
  windowClosed_ = true;
  window_.stride = stride_;
  window_.foundBy = finder_.foundBy();
  window_.durationUs = microseconds(windowLength_);
  addEvidence();
  tellProgram();
  if (isOneIn(stride_)) {
    queue(window_);
  }
  window_ = {};
}

// Before the window, so that whoever compares it knows with whose.
void Monitor::tellProgram() {
  recentUses_.push_back(std::exchange(uses_, {}));
  if (recentUses_.size() > RankProgram::kWindows) {
    recentUses_.pop_front();
  }
  const auto inAll = [this](const OperationUse& use) {
    return std::all_of(recentUses_.begin(), recentUses_.end(), [&](const Uses& uses) { return uses.contains(use); });
  };
  RankProgram program;
  std::copy_if(recentUses_.front().begin(), recentUses_.front().end(), std::back_inserter(program.uses), inAll);
  if (program != toldProgram_) {
    toldProgram_ = program;
    queue(std::move(program));
  }
}

// The same windows on every rank.
bool Monitor::isOneIn(std::uint32_t stride) const { return (window_.firstStep / options_.window) % stride == 0; }

void Monitor::addEvidence() {
  if (selfTime_.sawFetch()) {
    window_.inputUs = microseconds(windowInput_);
  }
  const int thread = recorder_->trainingThread();
  std::optional<OsTotals> totals;
  if (options_.osTotals && thread != kNoThread) {
    totals = options_.osTotals(thread);
  }
  if (totals && lastTotals_) {
    if (totals->thread && lastTotals_->thread) {
      window_.cpuUs = microseconds(totals->thread->cpu - lastTotals_->thread->cpu);
      window_.runDelayUs = microseconds(totals->thread->runDelay - lastTotals_->thread->runDelay);
    }
    if (isOneIn(countedStride_)) {
      window_.os = totals->counters.since(lastTotals_->counters);
    }
  }
  lastTotals_ = totals;
}

void Monitor::adjustThinning(Instant now) {
  if (!ratesSince_) {
    ratesSince_ = now;
  }
  const double seconds = toMilliseconds(now - *ratesSince_) / 1e3;
  if (now - *ratesSince_ < kRatePeriod) {
    return;
  }
  samples_.sampling = thinning(static_cast<double>(operationsRead_) / seconds, kSamplesPerSecond);
  stride_ = thinning(static_cast<double>(windowsClosed_) / seconds, kWindowsPerSecond);
  countedStride_ = thinning(static_cast<double>(windowsClosed_) / seconds, kCountedWindowsPerSecond);
  operationsRead_ = windowsClosed_ = 0;
  ratesSince_ = now;
}

// ---- Sending ----

void Monitor::queue(Message message) {
  if (!options_.exchange || !connected_) {
    return;
  }
  if (waiting_.size() >= kMaxWaiting) {
    const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), isSummary);
    waiting_.erase(oldest == waiting_.end() ? waiting_.begin() : oldest);
    ++messagesLost_;
  }
  waiting_.push_back(std::move(message));
}

void Monitor::tellMitigation(Instant now) {
  if (windowClosed_ && (!lastMitigation_ || now - *lastMitigation_ >= kMitigationPeriod)) {
    windowClosed_ = false;
    lastMitigation_ = now;
    queueMitigation();
  }
}

void Monitor::queueMitigation() {
  if (auto news = mitigation_.news(options_.complain)) {
    queue(std::move(*news));
  }
}

RankCounters Monitor::counters(bool final) const {
  const std::uint64_t unwritten = options_.operations ? options_.operations->linesLost() : 0;
  return {recorder_->collectives(), recorder_->dropped() + unwritten, messagesLost_, recorder_->captured(), final};
}

bool Monitor::send(Instant now) {
  lastSend_ = now;
  if (!options_.exchange || !connected_) {
    return true;
  }
  {
    const MutexLock lock(groupsMutex_);
    for (auto& group : newGroups_) {
      queue(std::move(group));
    }
    newGroups_.clear();
  }
  if (!samples_.operations.empty()) {
    queue(samples_);
    samples_.operations.clear();
  }
  if (options_.exchange->rootLeaving() && !finalQueued_) {
    leave();
    return true;
  }
  hearReport();
  return sendWaiting();
}

void Monitor::hearReport() {
  if (const auto bytes = options_.exchange->published()) {
    const MutexLock lock(publishedMutex_);
    published_.emplace(bytes->begin(), bytes->end());
  }
}

void Monitor::hearBeat(Instant now) {
  if (!listener_ || !connected_) {
    return;
  }
  if (const auto reading = listener_->round(now, *options_.exchange)) {
    queue(*reading);
  }
}

std::optional<std::string> Monitor::published() const {
  const MutexLock lock(publishedMutex_);
  return published_;
}

bool Monitor::sendWaiting() {
  while (!waiting_.empty()) {
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMessagesPerFrame));
    const std::vector<Message> messages(waiting_.begin(), end);
    switch (options_.exchange->send(encode({options_.rank, messages}))) {
      case Exchange::Sent::kYes:
        waiting_.erase(waiting_.begin(), end);
        break;
      case Exchange::Sent::kLater:
        return false;
      default:
        connected_ = false;
        messagesLost_ += waiting_.size();
        waiting_.clear();
        options_.complain("the store cannot be reached any more (" + options_.exchange->lastError() +
                          "); this rank goes on recording, but the reporting rank hears no more of it");
    }
  }
  return true;
}

void Monitor::queueFinal() {
  queueMitigation();
  queue(counters(true));
  if (options_.exchange) {
    options_.exchange->ending();
  }
}

// The root ends its session before this rank does: it gets what there is, and the store is not touched again.
void Monitor::leave() {
  queueFinal();
  sendWaiting();
  waiting_.clear();
  connected_ = false;
}

}  // namespace straggler
