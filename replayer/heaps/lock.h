// The smallest mutual exclusion that the system offers, without libstdc++ (which would bring
// exceptions along). The one place of this library that knows which system it runs on.
#pragma once

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace heaptape::heaps {

class Lock {
 public:
  Lock() noexcept = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() = default;  // nothing to give back: neither kind owns anything outside of itself

#if defined(_WIN32)
  void acquire() noexcept { ::AcquireSRWLockExclusive(&lock_); }
  void release() noexcept { ::ReleaseSRWLockExclusive(&lock_); }

 private:
  SRWLOCK lock_ = SRWLOCK_INIT;
#else
  void acquire() noexcept { ::pthread_mutex_lock(&lock_); }
  void release() noexcept { ::pthread_mutex_unlock(&lock_); }

 private:
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

}  // namespace heaptape::heaps
