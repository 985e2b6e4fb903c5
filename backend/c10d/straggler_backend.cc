#include "backend/c10d/straggler_backend.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <torch/csrc/distributed/c10d/debug.h>

#include "backend/c10d/blocking.h"
#include "backend/c10d/mitigating_backend.h"
#include "backend/c10d/process_log.h"
#include "backend/c10d/store_exchange.h"

namespace straggler {
namespace {

// The observer of the process's session. All backends of a session share it.
std::shared_ptr<Observer> observerOf(const std::shared_ptr<Session>& session) {
  return std::static_pointer_cast<Observer>(session->poller());
}

Session::Options sessionOptions(const ForwardingBackend::StorePtr& store, int rank, std::vector<int> ranks) {
  Session::Options options;
  options.settings = parseSettings(readEnvironment());
  std::sort(ranks.begin(), ranks.end());
  options.rank = rank;
  options.ranks = ranks;
  options.recorder = std::make_shared<Recorder>();
  options.poller = std::make_shared<Observer>(options.recorder);
  options.log = processLog();
  // All ranks are in that mode or none is: the root says it.
  if (c10d::debug_level() == c10d::DebugLevel::Detail && rank == options.ranks.front()) {
    options.note = "TORCH_DISTRIBUTED_DEBUG=DETAIL has torch check each collective by others, which distorts its times";
  }
  if (ranks.size() > 1) {
    try {
      options.exchange = std::make_shared<StoreExchange>(store, rank, ranks);
    } catch (const std::exception& error) {
      options.note +=
          (options.note.empty() ? "" : "; ") + std::string("other ranks cannot be reached: ") + error.what();
    }
  }
  return options;
}

// As far as there is memory for it.
void sayNotObserved(const std::string& group, const char* why) noexcept {
  try {
    processLog()->line(Severity::kWarning,
                       "straggler: group '" + group + "' is not observed: " + why + "; training goes on");
  } catch (const std::exception&) {
  }
}

}  // namespace

StragglerBackend::StragglerBackend(BackendPtr inner, StorePtr store, std::string name, std::vector<int> globalRanks)
    : ForwardingBackend(std::move(inner)),
      store_(std::move(store)),
      name_(std::move(name)),
      globalRanks_(std::move(globalRanks)) {
  TORCH_CHECK_VALUE(globalRanks_.size() == static_cast<std::size_t>(getSize()), "straggler: group '", name_, "' has ",
                    getSize(), " ranks, but ", globalRanks_.size(), " global ranks were given");
  if (!name_.empty()) {
    join();
  }
}

StragglerBackend::~StragglerBackend() { leave(); }

// ---- Session ----

void StragglerBackend::join() {
  const GroupInfo info{name_, getGroupDesc(), getBackendName(), globalRanks_};
  const int rank = globalRanks_.at(static_cast<std::size_t>(getRank()));
  group_ = info.id();
  try {
    session_ = joinSession(info, [&] { return sessionOptions(store_, rank, globalRanks_); });
    observer_ = observerOf(session_);
    tellOfMitigation();
  } catch (const SettingsError&) {
    throw;  // what is set is wrong: the user's to know, before the first collective
  } catch (const std::exception& error) {
    sayNotObserved(name_, error.what());
  }
}

// The session does not keep the group alive that it asks.
void StragglerBackend::tellOfMitigation() {
  // torch's own cast of an intrusive_ptr keeps what it cannot cast alive for ever.
  auto* const raw = dynamic_cast<MitigatingBackend*>(inner().get());
  if (raw == nullptr) {
    return;
  }
  const auto mitigation = c10::intrusive_ptr<MitigatingBackend>::unsafe_reclaim_from_nonowning(raw);
  session_->setMitigation([weak = c10::weak_intrusive_ptr<MitigatingBackend>(mitigation)] {
    const auto backend = weak.lock();
    return backend == nullptr ? std::nullopt : std::optional(backend->summary());
  });
}

void StragglerBackend::leave() noexcept {
  if (session_ == nullptr) {
    return;
  }
  // The last to leave waits for threads of ours.
  runBlocking([this] { leaveSession(std::exchange(session_, nullptr)); });
}

void StragglerBackend::setGroupUid(const std::string& uid) {
  ForwardingBackend::setGroupUid(uid);
  if (name_.empty() && !uid.empty()) {
    name_ = uid;
    join();
  }
}

// setGroupDesc() is not virtual: the description is passed on when it is first seen.
void StragglerBackend::hearDescription() noexcept {
  if (described_ || getGroupDesc().empty()) {
    return;
  }
  described_ = true;
  try {
    inner()->setGroupDesc(getGroupDesc());
    if (session_) {
      session_->addGroup({name_, getGroupDesc(), getBackendName(), globalRanks_});
    }
  } catch (const std::exception&) {  // no memory: the group goes without
  }
}

void StragglerBackend::shutdown() {
  ForwardingBackend::shutdown();
  leave();
}

// ---- Operations ----

ForwardingBackend::WorkPtr StragglerBackend::call(const Call& described, c10::function_ref<WorkPtr()> issue) {
  hearDescription();
  const bool ends = described.kind == OpKind::kCoalesced;
  if (!observer_ || (coalescing_.active && !ends)) {
    coalescing_.collective = coalescing_.collective || isNumbered(described.kind);
    coalescing_.call.bytes += described.bytes;
    coalescing_.call.dtype = described.dtype;
    coalescing_.call.device = described.device;
    return issue();
  }
  const Call recorded = ends ? coalesced(described) : described;
  const Ticket ticket = observer_->enter(group_, recorded);
  try {
    return observer_->issued(ticket, recorded, issue());
  } catch (...) {
    observer_->failed(ticket);
    throw;
  }
}

void StragglerBackend::startCoalescing() {
  ForwardingBackend::startCoalescing();
  coalescing_ = {};
  coalescing_.active = true;
}

// A batch of point to point calls differs by rank: it is recorded, but not numbered.
Call StragglerBackend::coalesced(const Call& end) {
  const Coalesced batch = std::exchange(coalescing_, {});
  Call whole = batch.call;
  whole.kind = batch.collective ? OpKind::kCoalesced : OpKind::kBatchedP2P;
  whole.method = end.method;
  whole.asynchronous = end.asynchronous;
  return whole;
}

ForwardingBackend::BackendPtr StragglerBackend::wrap(BackendPtr made, const std::vector<int>& ranks) {
  std::vector<int> globalRanks;
  const int known = static_cast<int>(globalRanks_.size());
  for (const int rank : ranks) {
    if (rank >= 0 && rank < known) {
      globalRanks.push_back(globalRanks_[static_cast<std::size_t>(rank)]);
    }
  }
  if (globalRanks.size() != static_cast<std::size_t>(made->getSize())) {
    // A group that was merged, or split after a reconfiguration, has members of which this one knows nothing but their
    // number.
    globalRanks.clear();
    for (int rank = 0; rank < made->getSize(); ++rank) {
      globalRanks.push_back(rank);
    }
  }
  const std::string name = made->getGroupUid();
  return c10::make_intrusive<StragglerBackend>(std::move(made), store_, name, globalRanks);
}

}  // namespace straggler
