#include "backend/c10d/mitigation.h"

#include <random>
#include <utility>

#include "backend/base/process_bound.h"
#include "backend/base/settings.h"
#include "backend/c10d/faulty_channel.h"
#include "backend/c10d/process_log.h"
#include "backend/c10d/store_channel.h"

namespace straggler {
namespace {

constexpr std::chrono::seconds kNonceTimeout{60};
const std::string kKey = "straggler/mitigate/";

struct Current {
  Mutex mutex;
  c10::weak_intrusive_ptr<MitigatingBackend> backend GUARDED_BY(mutex);
  ProcessBound origin;  // of the backend

  Current() : backend(c10::intrusive_ptr<MitigatingBackend>()) {}
};

Current& current() {
  static auto* const instance = new Current();  // outlives everything: backends may be dropped at exit
  return *instance;
}

// Of this group alone: each rank counts the groups that it has made on the store, and rank 0 draws a number for each.
std::string nonce(c10d::Store& store, int rank) {
  const auto round = std::to_string(store.add(kKey + "round/" + std::to_string(rank), 1));
  const std::string key = kKey + "nonce/" + round;
  if (rank == 0) {
    std::random_device random;
    const std::string drawn = round + "-" + std::to_string(random()) + std::to_string(random());
    store.set(key, std::vector<std::uint8_t>(drawn.begin(), drawn.end()));
    return drawn;
  }
  store.wait({key}, kNonceTimeout);
  const auto drawn = store.get(key);
  return {drawn.begin(), drawn.end()};
}

std::unique_ptr<ControlChannel> channelOf(const MitigationRequest& request, int rank) {
  StoreChannel::check(*request.store);
  std::unique_ptr<ControlChannel> channel =
      std::make_unique<StoreChannel>(request.store, nonce(*request.store->clone(), rank), rank);
  if (request.faults) {
    channel = std::make_unique<FaultyChannel>(std::move(channel), *request.faults, rank);
  }
  return channel;
}

MitigatingBackend::Options optionsOf(const MitigationRequest& request, const Settings& settings) {
  MitigatingBackend::Options options;
  options.engine.rank = request.inner->getRank();
  options.engine.mode = settings.mitigate == "drop" ? MitigationMode::kDrop : MitigationMode::kCarry;
  options.engine.staleness = static_cast<std::uint64_t>(settings.staleness);
  if (settings.graceMs) {
    options.engine.grace =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(*settings.graceMs));
  }
  if (request.participants) {
    auto script = std::make_shared<ParticipationScript>();
    script->fills.assign(request.fills.begin(), request.fills.end());
    script->participants = *request.participants;
    options.engine.script = std::move(script);
  }
  options.quorum = settings.quorum.of(request.inner->getSize());
  options.globalRank = request.globalRank;
  options.directory = settings.directory;
  options.timeout = request.timeout;
  return options;
}

}  // namespace

c10::intrusive_ptr<MitigatingBackend> makeMitigation(const MitigationRequest& request) {
  const auto options = optionsOf(request, parseSettings(readEnvironment()));
  try {
    auto backend =
        c10::make_intrusive<MitigatingBackend>(request.inner, channelOf(request, request.inner->getRank()), options);
    const MutexLock lock(current().mutex);
    current().backend = c10::weak_intrusive_ptr<MitigatingBackend>(backend);
    current().origin = ProcessBound();
    return backend;
  } catch (const SettingsError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    processLog()->line(Severity::kWarning,
                       "straggler: mitigation is off on rank " + std::to_string(request.globalRank) + ": " +
                           why.substr(0, why.find('\n')) + "; training goes on, and waits for late ranks");
    return {};
  }
}

c10::intrusive_ptr<MitigatingBackend> currentMitigation() {
  if (!current().origin.here()) {
    return {};  // the parent's
  }
  const MutexLock lock(current().mutex);
  return current().backend.lock();
}

}  // namespace straggler
