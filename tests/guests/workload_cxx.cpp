// A deterministic single-threaded C++ program: containers, strings, streams, exceptions, over-aligned
// types, failing new. Usage: workload_cxx [ROUNDS [lucky]]; lucky: no new fails (allocators
// written in C abort there).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "guest.h"

namespace {

struct alignas(64) Wide {
  std::uint64_t words[8] = {};
};

std::uint64_t containers(std::uint64_t& random) {
  std::map<std::uint64_t, std::string> tree;
  std::unordered_map<std::string, std::vector<int>> table;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t r = next_random(&random) >> 40;
    tree[r] = std::string(r % 90, 'a');
    table[std::to_string(r % 500)].push_back(i);
  }
  std::vector<std::uint64_t> keys;
  for (const auto& [key, text] : tree) {
    keys.push_back(key + text.size());
  }
  std::stable_sort(keys.begin(), keys.end(), [](auto a, auto b) { return a % 1000 < b % 1000; });
  return keys.front() + table.size();
}

std::uint64_t exceptions(std::uint64_t random, bool lucky) {
  try {
    if (lucky || random % 2 == 0) {
      throw std::runtime_error("message " + std::to_string(random));
    }
    keep(::operator new(opaque(PTRDIFF_MAX)));
  } catch (const std::bad_alloc&) {
    return 1;
  } catch (const std::exception& error) {
    return std::string(error.what()).size();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 300;
  std::uint64_t random = 4242;
  std::uint64_t sum = 0;
  for (long i = 0; i < rounds; ++i) {
    sum += containers(random);
    sum += exceptions(next_random(&random) >> 32, argc > 2);
    const auto wide = std::make_unique<Wide[]>(3);
    keep(wide.get());
    std::unique_ptr<Wide> nothrow(new (std::nothrow) Wide);
    keep(nothrow.get());
    std::ostringstream text;
    text << i << ' ' << sum << ' ' << 1.5 * static_cast<double>(i);
    sum += text.str().size();
  }
  std::cout << std::hex << sum << '\n';
}
