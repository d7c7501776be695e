// Memory for allocations that come before the program's allocator is known.
//
// Finding the real functions may itself allocate (a program may bring its own dl_iterate_phdr). Those
// blocks come from here: a bump allocator over mapped chunks, each at least twice as large as the last.
// They are recognised when the program frees, resizes or measures them later, and are never reused.
// Any thread (signals blocked by the caller); never fails before the address space does.
#pragma once

#include <cstddef>

namespace heaptape::preload::bootstrap {

[[nodiscard]] void* allocate(std::size_t size_bytes, std::size_t alignment) noexcept;
[[nodiscard]] bool used() noexcept;
[[nodiscard]] bool owns(const void* p) noexcept;
// The size that was asked for. Only for a block that is owned.
[[nodiscard]] std::size_t size_bytes(const void* p) noexcept;

// Calls `visit(p, size_bytes, context)` for each block so far.
void for_each(void (*visit)(void* p, std::size_t size_bytes, void* context) noexcept, void* context) noexcept;

}  // namespace heaptape::preload::bootstrap
