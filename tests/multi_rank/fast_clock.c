/* Preloaded: CLOCK_MONOTONIC runs faster than it is by 100 parts in a million, from FAST_SINCE_NS on. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PARTS = 10000 }; /* one in so many more */

static long long since(void) {
  static long long value;
  if (value == 0) {
    value = atoll(getenv("FAST_SINCE_NS"));
  }
  return value;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_MONOTONIC) {
    const long long ns = time->tv_sec * 1000000000LL + time->tv_nsec;
    const long long fast = ns + (ns - since()) / PARTS;
    time->tv_sec = fast / 1000000000;
    time->tv_nsec = fast % 1000000000;
  }
  return (int)result;
}

/* Until a time of the fast clock: the kernel is told when that is on its own. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
  struct timespec until = *time;
  if (clock == CLOCK_MONOTONIC && flags == TIMER_ABSTIME) {
    const long long fast = time->tv_sec * 1000000000LL + time->tv_nsec;
    const long long ns = since() + (fast - since()) / (PARTS + 1) * PARTS;
    until.tv_sec = ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
  }
  return syscall(SYS_clock_nanosleep, clock, flags, &until, left) == 0 ? 0 : 4; /* EINTR */
}
