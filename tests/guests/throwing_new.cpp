// operator new that throws, in every way it can; afterwards the program goes on, and so must the
// recording: 1,000 pairs of 77 bytes between the marks.
#include <cstdio>
#include <new>
#include <stdexcept>

#include "guest.h"

namespace {

void* reserve = nullptr;
int handler_calls = 0;

void give_reserve_then_give_up() {
  ++handler_calls;
  if (reserve != nullptr) {
    ::operator delete(reserve);
    reserve = nullptr;
  } else {
    std::set_new_handler(nullptr);
  }
}

void throw_from_handler() { throw std::bad_alloc(); }

struct Fails {
  Fails() { throw std::runtime_error("constructor"); }
  char bytes[88] = {};
};

template <typename Call>
void expect_bad_alloc(const char* name, Call call) {
  try {
    keep(call());
    std::printf("%s: no exception\n", name);
  } catch (const std::bad_alloc&) {
    std::printf("%s: bad_alloc\n", name);
  }
}

}  // namespace

int main() {
  const std::size_t huge = opaque(PTRDIFF_MAX);
  expect_bad_alloc("new", [&] { return ::operator new(huge); });
  expect_bad_alloc("new[]", [&] { return ::operator new[](huge); });
  expect_bad_alloc("aligned new", [&] { return ::operator new (huge, std::align_val_t{64}); });
  std::printf("nothrow: %s\n", ::operator new(huge, std::nothrow) == nullptr ? "null" : "block");

  reserve = ::operator new(1000);
  std::set_new_handler(give_reserve_then_give_up);
  expect_bad_alloc("new with handler", [&] { return ::operator new(huge); });
  std::printf("handler calls: %d\n", handler_calls);
  std::set_new_handler(throw_from_handler);
  expect_bad_alloc("new with throwing handler", [&] { return ::operator new(huge); });
  std::printf("nothrow with throwing handler: %s\n",
              ::operator new(huge, std::nothrow) == nullptr ? "null" : "block");
  std::set_new_handler(nullptr);

  try {
    keep(new Fails);
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
  }

  begin_marked();
  for (int i = 0; i < 1000; ++i) {
    void* block = ::operator new(77);
    keep(block);
    ::operator delete(block);
  }
  end_marked();
}
