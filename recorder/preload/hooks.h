// What every hook has in common.
#pragma once

#include <cstddef>

#include "recorder/preload/record.h"

// A symbol that stands in front of the program's own; each is listed in preload.map too.
#define HEAPTAPE_HOOK extern "C" [[gnu::visibility("default")]]

namespace heaptape::preload {

// The call site of a hook: only meaningful in the hook's own body.
#define HEAPTAPE_CALLER ::heaptape::preload::address_of(__builtin_return_address(0))

// n * each, or the largest size if that overflows: what was asked for is then more than there can be.
[[nodiscard, gnu::always_inline]] inline std::size_t product_or_most(std::size_t n,
                                                                     std::size_t each) noexcept {
  std::size_t product = 0;
  return __builtin_mul_overflow(n, each, &product) ? ~std::size_t{0} : product;
}

}  // namespace heaptape::preload
