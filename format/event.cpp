#include "format/event.h"

namespace heaptape::format {
namespace {

struct Names {
  Kind kind;
  std::string_view name;
  std::string_view key;
};

constexpr Names names[] = {
    {Kind::malloc, "malloc", "malloc"},
    {Kind::calloc, "calloc", "calloc"},
    {Kind::posix_memalign, "posix_memalign", "posix_memalign"},
    {Kind::aligned_alloc, "aligned_alloc", "aligned_alloc"},
    {Kind::memalign, "memalign", "memalign"},
    {Kind::valloc, "valloc", "valloc"},
    {Kind::pvalloc, "pvalloc", "pvalloc"},
    {Kind::operator_new, "operator new", "operator_new"},
    {Kind::operator_new_array, "operator new[]", "operator_new_array"},
    {Kind::operator_new_nothrow, "operator new(nothrow)", "operator_new_nothrow"},
    {Kind::operator_new_array_nothrow, "operator new[](nothrow)", "operator_new_array_nothrow"},
    {Kind::realloc, "realloc", "realloc"},
    {Kind::reallocarray, "reallocarray", "reallocarray"},
    {Kind::free, "free", "free"},
    {Kind::cfree, "cfree", "cfree"},
    {Kind::free_sized, "free_sized", "free_sized"},
    {Kind::free_aligned_sized, "free_aligned_sized", "free_aligned_sized"},
    {Kind::operator_delete, "operator delete", "operator_delete"},
    {Kind::operator_delete_array, "operator delete[]", "operator_delete_array"},
    {Kind::operator_delete_sized, "operator delete(size)", "operator_delete_sized"},
    {Kind::operator_delete_array_sized, "operator delete[](size)", "operator_delete_array_sized"},
    {Kind::malloc_trim, "malloc_trim", "malloc_trim"},
};

constexpr const Names* find(Kind k) noexcept {
  for (const Names& n : names) {
    if (n.kind == k) {
      return &n;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view kind_name(Kind k) noexcept {
  const Names* n = find(k);
  return n == nullptr ? "unknown" : n->name;
}

std::string_view kind_key(Kind k) noexcept {
  const Names* n = find(k);
  return n == nullptr ? "unknown" : n->key;
}

}  // namespace heaptape::format
