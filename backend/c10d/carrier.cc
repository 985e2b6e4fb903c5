#include "backend/c10d/carrier.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include <ATen/Functions.h>

#include "backend/c10d/blocking.h"

namespace straggler {
namespace {

constexpr std::chrono::milliseconds kWaitPeriod{5};
constexpr const char* kNotAgreed =
    "straggler: the ranks of the group did not agree in time on who takes part in a slot that was to be filled for "
    "this rank; "
    "the group cannot be used any more";
// A lead may cost its payers this share of the timeout at the next exact operation.
constexpr int kBacklogShare = 4;

Engine::Options bounded(Engine::Options options, std::chrono::milliseconds timeout) {
  options.maxBacklog = timeout / kBacklogShare;
  return options;
}

// What hands a logged result out, once it is there.
std::function<void()> copyOf(const at::Tensor& logged, const at::Tensor& tensor) {
  return [logged, to = tensor]() mutable { to.copy_(logged.view(to.sizes())); };
}

}  // namespace

Carrier::Carrier(BackendPtr inner, Engine::Options options, std::chrono::milliseconds timeout)
    : inner_(std::move(inner)),
      mode_(options.mode),
      engine_(bounded(std::move(options), timeout)),
      residuals_(inner_->getSize()),
      timeout_(timeout) {}

// ---- The user's threads ----

Carrier::WorkPtr Carrier::arrive(const SlotOperation& operation, const std::string& what, at::Tensor* tensor,
                                 const Form* form, c10::function_ref<WorkPtr()> issue) {
  std::optional<Instant> deadline;
  std::optional<Outcome> outcome;
  while (!outcome) {
    if (deadline) {
      waitForProxy(*deadline);
    }
    const MutexLock lock(mutex_);
    const Instant now = SteadyClock().now();
    deadline = deadline.value_or(now + timeout_);
    if (form != nullptr) {
      (operation.bucket ? buckets_[*operation.bucket] : broadcasts_[operation.dtype]) = *form;
    }
    const Engine::Arrival arrival = engine_.arrive(operation, now, what);
    if (!std::holds_alternative<Engine::Wait>(arrival)) {
      outcome = step(arrival, operation, tensor, issue);
      fillAll();
      announceNews();
    }
  }
  keepPromises();
  if (outcome->promised) {
    return outcome->work;
  }
  if (outcome->logged.defined()) {
    return ChainedWork::after(outcome->work, {*tensor}, copyOf(outcome->logged, *tensor));
  }
  if (mode_ == MitigationMode::kDrop && operation.bucket && outcome->work) {
    return scaledUp(std::move(outcome->work), outcome->slot, *tensor);
  }
  return outcome->work;
}

Carrier::Outcome Carrier::step(const Engine::Arrival& arrival, const SlotOperation& operation, at::Tensor* tensor,
                               c10::function_ref<WorkPtr()> issue) {
  if (const auto* failed = std::get_if<Engine::Fail>(&arrival)) {
    this->failed(failed->reason);
    TORCH_CHECK(false, "straggler: ", failed->reason, "; the group cannot be used any more");
  }
  if (const auto* order = std::get_if<Engine::Take>(&arrival)) {
    return take(*order, operation, *tensor);
  }
  const auto order = std::get<Engine::Issue>(arrival);
  if (operation.bucket) {
    residuals_.moveInto(*operation.bucket, *tensor, operation.scale, false);
  }
  WorkPtr work = issue();
  issued(order.slot, work);
  return {std::move(work), order.slot};
}

Carrier::Outcome Carrier::take(const Engine::Take& order, const SlotOperation& operation, const at::Tensor& tensor) {
  if (order.owes && !residuals_.add(order.bucket, tensor, operation.scale)) {
    engine_.ledger().discardLast(order.bucket);
  }
  auto found = log_.extract(order.slot);
  if (found.empty()) {
    auto work = c10::make_intrusive<ChainedWork>(c10d::OpType::ALLREDUCE, Tensors{tensor});
    promised_[order.slot] = {work, tensor, SteadyClock().now() + timeout_};
    return {work, order.slot, {}, true};
  }
  const Logged entry = std::move(found.mapped());
  if (entry.error) {
    std::rethrow_exception(entry.error);
  }
  return {entry.work, order.slot, entry.result};
}

// ---- Promises ----

void Carrier::keepPromises() {
  std::vector<std::pair<Promised, Logged>> kept;
  {
    const MutexLock lock(mutex_);
    for (auto promise = promised_.begin(); promise != promised_.end();) {
      auto found = log_.extract(promise->first);
      if (found.empty()) {
        ++promise;
      } else {
        kept.emplace_back(std::move(promise->second), std::move(found.mapped()));
        promise = promised_.erase(promise);
      }
    }
  }
  for (auto& [promise, entry] : kept) {
    if (entry.error) {
      promise.work->fail(entry.error);
    } else {
      promise.work->follow(entry.work, copyOf(entry.result, promise.tensor));
    }
  }
}

// Those whose time is over.
void Carrier::breakPromises(Instant now) noexcept {
  std::vector<Promised> broken;
  {
    const MutexLock lock(mutex_);
    std::erase_if(promised_, [&](const auto& promise) {
      const bool late = promise.second.deadline <= now;
      if (late) {
        broken.push_back(promise.second);
      }
      return late;
    });
  }
  for (const auto& promise : broken) {
    promise.work->fail(std::make_exception_ptr(std::runtime_error(kNotAgreed)));
  }
}

// The slot before is reserved: it is filled once all who take part in it know, or never, if one of them is gone.
void Carrier::waitForProxy(Instant deadline) {
  runBlocking([&] {
    const MutexLock lock(mutex_);
    TORCH_CHECK(!stopped_ && SteadyClock().now() < deadline, kNotAgreed);
    moved_.waitFor(mutex_, kWaitPeriod, [] { return false; });
  });
}

Carrier::WorkPtr Carrier::scaledUp(WorkPtr work, Slot slot, const at::Tensor& tensor) {
  return ChainedWork::after(work, {tensor}, [self = shared_from_this(), slot, result = tensor]() mutable {
    const auto participants = self->with([slot](Engine& engine) { return engine.participantsOf(slot); });
    self->rescale(result, participants);
  });
}

void Carrier::rescale(at::Tensor& result, std::uint32_t participants) const {
  if (participants > 0) {
    result.mul_(static_cast<double>(inner_->getSize()) / participants);
  }
}

void Carrier::issued(Slot slot, const WorkPtr& work) {
  if (!work) {
    engine_.completed(slot, SteadyClock().now());
    return;
  }
  const auto stamp = [completions = completions_, slot](c10::ivalue::Future& /*done*/) {
    const MutexLock lock(completions->mutex);
    completions->at[slot] = SteadyClock().now();
  };
  try {
    work->getFuture()->addCallback(stamp, /*uses_future=*/false);
    issued_.push_back({slot, work});
  } catch (const c10::Error&) {
    // Gloo's reduce_scatter has no Future, and does not say when it is done: the slots after it will.
  }
}

// ---- Proxy ----

void Carrier::fillAll() {
  while (const auto order = engine_.nextFill(SteadyClock().now())) {
    fill(*order);
  }
  moved_.notifyAll();
}

void Carrier::fill(const Engine::Fill& order) {
  const auto elements = static_cast<std::int64_t>(order.operation.elements);
  Logged entry;
  try {
    if (order.operation.bucket) {
      entry.bucket = *order.operation.bucket;
      const Form& form = buckets_.at(entry.bucket);
      Tensors tensors{at::zeros({elements}, form.tensor)};
      entry.result = tensors.front();
      entry.carried = residuals_.moveInto(entry.bucket, entry.result, order.operation.scale, true);
      entry.work = inner_->allreduce(tensors, form.allreduce);
    } else {
      c10d::BroadcastOptions options;
      options.rootRank = order.operation.root;
      Tensors tensors{at::empty({elements}, broadcasts_.at(order.operation.dtype).tensor)};
      entry.result = tensors.front();
      entry.work = inner_->broadcast(tensors, options);
    }
    if (order.participants > 0) {
      entry.work = ChainedWork::after(entry.work, {entry.result},
                                      [self = shared_from_this(), result = entry.result,
                                       n = order.participants]() mutable { self->rescale(result, n); });
    }
  } catch (const std::exception& error) {
    // The main thread gets it when it comes to the slot.
    entry.error = std::current_exception();
    failed(std::string("a slot could not be filled: ") + error.what());
  }
  log_[order.slot] = std::move(entry);
}

void Carrier::failed(const std::string& reason) {
  engine_.standDown();
  failure_ = failure_.empty() ? reason : failure_;
}

void Carrier::hear(const ControlMessage& message) {
  {
    const MutexLock lock(mutex_);
    engine_.receive(message);
    fillAll();
    announceNews();
  }
  keepPromises();
}

// What waits for the grace is found in time by looking now and then.
void Carrier::announceNews() {
  if (engine_.tellsAtOnce()) {
    hasNews_ = true;
    news_.notifyAll();
  }
}

// ---- What there is to tell ----

void Carrier::seeCompletions() {
  const MutexLock lock(completions_->mutex);
  while (!issued_.empty()) {
    const Issued& oldest = issued_.front();
    const auto stamp = completions_->at.find(oldest.slot);
    if (stamp == completions_->at.end() && !oldest.work->isCompleted()) {
      break;
    }
    engine_.completed(oldest.slot, stamp == completions_->at.end() ? SteadyClock().now() : stamp->second);
    completions_->at.erase(completions_->at.begin(), completions_->at.upper_bound(oldest.slot));
    issued_.pop_front();
  }
}

Carrier::Look Carrier::look() {
  breakPromises(SteadyClock().now());
  const MutexLock lock(mutex_);
  seeCompletions();
  const Instant now = SteadyClock().now();
  return {engine_.tell(now), engine_.lookAgainIn(now), engine_.takeParticipations(), std::exchange(failure_, {})};
}

void Carrier::waitForNews(Duration patience) {
  const MutexLock lock(mutex_);
  news_.waitFor(mutex_, patience, [this]() REQUIRES(mutex_) { return stopped_ || hasNews_; });
  hasNews_ = false;
}

void Carrier::stop() noexcept {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    engine_.standDown();
    moved_.notifyAll();
    news_.notifyAll();
  }
  breakPromises(Instant::max());
}

// ---- State ----

void Carrier::setTimeout(std::chrono::milliseconds timeout) {
  const MutexLock lock(mutex_);
  timeout_ = timeout;
  engine_.setMaxBacklog(timeout / kBacklogShare);
}

void Carrier::restore(BucketId bucket, const at::Tensor& owed) {
  const MutexLock lock(mutex_);
  residuals_.restore(bucket, owed);
  engine_.restore(bucket);
}

// What was contributed to slots that the main thread has not reached is, in the step in which it is, still owed.
std::map<BucketId, at::Tensor> Carrier::residuals() const {
  const MutexLock lock(mutex_);
  std::map<BucketId, at::Tensor> owed;
  for (const auto& [bucket, residual] : residuals_.all()) {
    owed[bucket] = residual.clone();
  }
  for (const auto& [slot, entry] : log_) {
    if (entry.carried.defined()) {
      at::Tensor& sum = owed[entry.bucket];
      sum = sum.defined() ? sum.add_(entry.carried) : entry.carried.clone();
    }
  }
  return owed;
}

}  // namespace straggler
