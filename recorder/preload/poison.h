// Included last by every source of the preload: names that must never appear in it. What lies behind
// them allocates, locks, prints, throws, ends the program, or disturbs state that is the program's
// (dlsym and dlopen change what the program's dlerror() says).
#pragma once

// clang-format off
#pragma GCC poison printf fprintf snprintf puts perror fopen fwrite strdup asprintf
#pragma GCC poison assert abort exit _exit quick_exit raise
#pragma GCC poison dlopen dlsym dlvsym dlerror dladdr getenv setenv
#pragma GCC poison pthread_mutex_lock pthread_once pthread_create pthread_atfork atexit sigaction
#pragma GCC poison throw try catch dynamic_cast typeid
// clang-format on
