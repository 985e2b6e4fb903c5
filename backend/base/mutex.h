// Mutex, MutexLock and CondVar: std's own, annotated so that clang's thread-safety analysis checks at compile time
// that a field is only touched with its mutex held. With any other compiler the annotations are empty.
//
// Contract: a shared field is declared GUARDED_BY(mutex_); a function that expects the lock says REQUIRES(mutex_).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define STRAGGLER_ANNOTATION(x) __attribute__((x))
#else
#define STRAGGLER_ANNOTATION(x)
#endif

#define CAPABILITY(x) STRAGGLER_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY STRAGGLER_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) STRAGGLER_ANNOTATION(guarded_by(x))
#define REQUIRES(...) STRAGGLER_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) STRAGGLER_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) STRAGGLER_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) STRAGGLER_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS STRAGGLER_ANNOTATION(no_thread_safety_analysis)

namespace straggler {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable on an annotated Mutex. The caller holds the mutex around every wait.
class CondVar {
 public:
  void notifyAll() noexcept { condition_.notify_all(); }

  // Waits until `predicate()` holds or `duration` has passed; says whether it holds.
  template <class Predicate>
  bool waitFor(Mutex& mutex, std::chrono::nanoseconds duration, Predicate predicate) REQUIRES(mutex) {
    return condition_.wait_for(mutex, duration, predicate);
  }

 private:
  std::condition_variable_any condition_;
};

}  // namespace straggler
