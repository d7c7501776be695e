// A C++ plug-in for the C host: allocates through operator new, throws and catches inside.
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "guest.h"

namespace {

struct alignas(128) Wide {
  char bytes[128];
};

}  // namespace

extern "C" long plugin_work(long rounds) {
  long sum = 0;
  begin_marked();
  for (long i = 0; i < rounds; ++i) {
    std::map<long, std::string> words;
    for (long k = 0; k < 16; ++k) {
      words[k] = std::string(static_cast<std::size_t>(40 + k), 'x');
    }
    auto wide = std::make_unique<Wide>();
    keep(wide.get());
    try {
      throw std::runtime_error(words[i % 16]);
    } catch (const std::runtime_error& error) {
      sum += static_cast<long>(std::string(error.what()).size());
    }
    ::operator delete(::operator new(333));
    ::operator delete[](::operator new[](334, std::nothrow), std::nothrow);
  }
  end_marked();
  return sum;
}
