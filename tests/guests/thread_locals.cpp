// Threads whose thread_local objects free at the thread's end, after its last ordinary call.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "guest.h"

namespace {

struct Holder {
  std::vector<void*> blocks;
  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    for (void* block : blocks) {
      ::operator delete(block);
    }
    void* last = ::operator new(65);
    keep(last);
    ::operator delete(last);
  }
};

thread_local Holder holder;
thread_local std::string text;

}  // namespace

int main() {
  for (int i = 0; i < 40; ++i) {
    std::thread([i] {
      text.assign(static_cast<std::size_t>(100 + i), 'x');
      for (int k = 0; k < 10; ++k) {
        holder.blocks.push_back(::operator new(66));
      }
    }).join();
  }
  std::puts("40 threads");
}
