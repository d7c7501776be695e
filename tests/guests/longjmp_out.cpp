// Leaves operator new by siglongjmp out of its new_handler, once plainly and once from an
// alternate signal stack; afterwards 1,000 pairs of 78 bytes between the marks.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <new>

#include "guest.h"

namespace {

sigjmp_buf back;

void jump() { siglongjmp(back, 1); }
void raise_in_new() { raise(SIGUSR1); }
void jump_from_signal(int) { siglongjmp(back, 2); }

void fail_to_allocate(std::new_handler handler) {
  const std::size_t huge = opaque(PTRDIFF_MAX);
  std::set_new_handler(handler);
  const int how = sigsetjmp(back, 1);
  if (how == 0) {
    keep(::operator new(huge));
    std::puts("allocated?");
  } else {
    std::printf("left by jump %d\n", how);
  }
  std::set_new_handler(nullptr);
}

alignas(16) char signal_stack[65536];

}  // namespace

int main() {
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = jump_from_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);

  for (int i = 0; i < 3; ++i) {
    fail_to_allocate(jump);
    fail_to_allocate(raise_in_new);
  }
  begin_marked();
  for (int i = 0; i < 1000; ++i) {
    void* block = ::operator new(78);
    keep(block);
    ::operator delete(block);
  }
  end_marked();
}
