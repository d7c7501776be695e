#include "recorder/preload/symbols.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#include "recorder/preload/poison.h"

namespace heaptape::preload {
namespace {

// Cost: one pass over two short names; the C library's strcmp may not be resolved yet.
bool same(const char* a, const char* b) noexcept {
  while (*a == *b && *a != '\0') {
    ++a;
    ++b;
  }
  return *a == *b;
}

std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t h = 5381;
  for (; *name != '\0'; ++name) {
    h = h * 33 + static_cast<unsigned char>(*name);
  }
  return h;
}
std::uint32_t sysv_hash(const char* name) noexcept {
  std::uint32_t h = 0;
  for (; *name != '\0'; ++name) {
    h = (h << 4) + static_cast<unsigned char>(*name);
    const std::uint32_t g = h & 0xf0000000;
    h = (h ^ g >> 24) & ~g;
  }
  return h;
}

// The dynamic section of one loaded object.
class Object {
 public:
  explicit Object(const dl_phdr_info& info) noexcept : base_(info.dlpi_addr) {
    for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
        read_dynamic(reinterpret_cast<const ElfW(Dyn)*>(base_ + info.dlpi_phdr[i].p_vaddr));
      }
    }
  }

  [[nodiscard]] void* find(const char* name) const noexcept {
    if (symbols_ == nullptr || strings_ == nullptr) {
      return nullptr;
    }
    return gnu_ != nullptr ? find_gnu(name) : sysv_ != nullptr ? find_sysv(name) : nullptr;
  }

  // Objects of the start-up never go; libstdc++ stays once loaded (it defines unique symbols).
  [[nodiscard]] bool stays() const noexcept {
    return never_unloaded_ ||
           (soname_ != 0 && strings_ != nullptr && same(strings_ + soname_, "libstdc++.so.6"));
  }

 private:
  // glibc stores absolute addresses here; the vDSO and some other objects keep offsets.
  template <typename T>
  [[nodiscard]] const T* at(ElfW(Addr) value) const noexcept {
    return reinterpret_cast<const T*>(value < base_ ? value + base_ : value);
  }

  void read_dynamic(const ElfW(Dyn) * d) noexcept {
    for (; d->d_tag != DT_NULL; ++d) {
      switch (d->d_tag) {
        case DT_SYMTAB:
          symbols_ = at<ElfW(Sym)>(d->d_un.d_ptr);
          break;
        case DT_STRTAB:
          strings_ = at<char>(d->d_un.d_ptr);
          break;
        case DT_GNU_HASH:
          gnu_ = at<std::uint32_t>(d->d_un.d_ptr);
          break;
        case DT_HASH:
          sysv_ = at<std::uint32_t>(d->d_un.d_ptr);
          break;
        case DT_VERSYM:
          versions_ = at<std::uint16_t>(d->d_un.d_ptr);
          break;
        case DT_SONAME:
          soname_ = d->d_un.d_val;
          break;
        case DT_FLAGS_1:
          never_unloaded_ = (d->d_un.d_val & DF_1_NODELETE) != 0;
          break;
        default:
          break;
      }
    }
  }

  // The address, if symbol `index` is a default definition of the function `name`.
  [[nodiscard]] void* definition(std::uint32_t index, const char* name) const noexcept {
    const ElfW(Sym)& s = symbols_[index];
    const unsigned type = ELF64_ST_TYPE(s.st_info);
    const unsigned binding = ELF64_ST_BIND(s.st_info);
    const bool hidden_version = versions_ != nullptr && (versions_[index] & 0x8000) != 0;
    if (s.st_shndx == SHN_UNDEF || s.st_value == 0 || binding == STB_LOCAL || hidden_version ||
        (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) ||
        !same(strings_ + s.st_name, name)) {
      return nullptr;
    }
    const ElfW(Addr) address = base_ + s.st_value;
    if (type == STT_GNU_IFUNC) {
      return reinterpret_cast<void* (*)()>(address)();
    }
    return reinterpret_cast<void*>(address);
  }

  [[nodiscard]] void* find_gnu(const char* name) const noexcept {
    const std::uint32_t bucket_count = gnu_[0];
    const std::uint32_t first_hashed = gnu_[1];
    const std::uint32_t bloom_words = gnu_[2];
    const std::uint32_t* const buckets = gnu_ + 4 + std::size_t{bloom_words} * (sizeof(ElfW(Addr)) / 4);
    const std::uint32_t* const chains = buckets + bucket_count;
    if (bucket_count == 0) {
      return nullptr;
    }
    const std::uint32_t hash = gnu_hash(name);
    std::uint32_t index = buckets[hash % bucket_count];
    if (index < first_hashed) {
      return nullptr;
    }
    for (;; ++index) {
      const std::uint32_t entry = chains[index - first_hashed];
      if ((entry | 1) == (hash | 1)) {
        if (void* const address = definition(index, name); address != nullptr) {
          return address;
        }
      }
      if ((entry & 1) != 0) {
        return nullptr;
      }
    }
  }

  [[nodiscard]] void* find_sysv(const char* name) const noexcept {
    const std::uint32_t bucket_count = sysv_[0];
    const std::uint32_t* const buckets = sysv_ + 2;
    const std::uint32_t* const chains = buckets + bucket_count;
    if (bucket_count == 0) {
      return nullptr;
    }
    for (std::uint32_t i = buckets[sysv_hash(name) % bucket_count]; i != STN_UNDEF; i = chains[i]) {
      if (void* const address = definition(i, name); address != nullptr) {
        return address;
      }
    }
    return nullptr;
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* gnu_ = nullptr;
  const std::uint32_t* sysv_ = nullptr;
  const std::uint16_t* versions_ = nullptr;
  ElfW(Xword) soname_ = 0;
  bool never_unloaded_ = false;
};

bool holds(const dl_phdr_info& info, std::uintptr_t address) noexcept {
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info.dlpi_phdr[i];
    if (p.p_type == PT_LOAD && address - (info.dlpi_addr + p.p_vaddr) < p.p_memsz) {
      return true;
    }
  }
  return false;
}

// How many objects were there when this library was first asked: none of those is ever unloaded. Zero: not
// known yet. Every thread that asks writes the same or a later value; the first call comes long before
// threads.
constinit unsigned start_up_objects = 0;

struct Search {
  const char* name;
  unsigned index = 0;
  bool behind_us = false;
  Symbol found{};
};

int visit(dl_phdr_info* info, std::size_t /*bytes*/, void* data) noexcept {
  Search& s = *static_cast<Search*>(data);
  const unsigned index = s.index++;
  if (!s.behind_us) {
    s.behind_us = holds(*info, reinterpret_cast<std::uintptr_t>(&start_up_objects));
    return 0;
  }
  const Object object(*info);
  if (void* const address = object.find(s.name); address != nullptr) {
    s.found = {address, index < start_up_objects || object.stays()};
    return 1;
  }
  return 0;
}

int count(dl_phdr_info* /*info*/, std::size_t /*bytes*/, void* data) noexcept {
  *static_cast<unsigned*>(data) += 1;
  return 0;
}

}  // namespace

Symbol next_symbol(const char* name) noexcept {
  if (start_up_objects == 0) {
    unsigned objects = 0;
    dl_iterate_phdr(count, &objects);
    start_up_objects = objects;
  }
  Search search{.name = name};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace heaptape::preload
