// A program or library as it lies in memory (the PE format of Microsoft's documentation): what it
// exports, and the slots through which it calls what it imports. Nothing outside of the module is
// read, whatever its tables say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "windows_headers.hpp"

namespace heapwright::process {

class loaded_module {
 public:
  explicit loaded_module(HMODULE module) noexcept : base_(reinterpret_cast<std::byte*>(module)) {
    IMAGE_DOS_HEADER dos;
    std::memcpy(&dos, base_, sizeof dos);
    if (dos.e_magic != IMAGE_DOS_SIGNATURE) return;
    const auto* const headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base_ + dos.e_lfanew);
    if (headers->Signature != IMAGE_NT_SIGNATURE) return;
    headers_ = headers;
    bytes_ = headers->OptionalHeader.SizeOfImage;
  }

  [[nodiscard]] std::byte* begin() const noexcept { return base_; }
  [[nodiscard]] std::byte* end() const noexcept { return base_ + bytes_; }

  /// The place in the table of exports that says where `name` is, as bytes from begin(); null: it
  /// exports no such function, or one of another library.
  [[nodiscard]] DWORD* export_named(const char* name) const noexcept {
    const IMAGE_DATA_DIRECTORY where = directory(IMAGE_DIRECTORY_ENTRY_EXPORT);
    const auto* const table = at<IMAGE_EXPORT_DIRECTORY>(where.VirtualAddress);
    if (table == nullptr) return nullptr;
    const auto* const names = at<DWORD>(table->AddressOfNames, table->NumberOfNames);
    const auto* const ordinals = at<WORD>(table->AddressOfNameOrdinals, table->NumberOfNames);
    auto* const functions = at<DWORD>(table->AddressOfFunctions, table->NumberOfFunctions);
    if (names == nullptr || ordinals == nullptr || functions == nullptr) return nullptr;
    for (DWORD low = 0, high = table->NumberOfNames; low < high;) {  // they are sorted
      const DWORD middle = low + (high - low) / 2;
      const char* const found = at<char>(names[middle]);
      const int order = found == nullptr ? 1 : std::strcmp(name, found);
      if (order == 0) {
        DWORD* const function = ordinals[middle] < table->NumberOfFunctions ? functions + ordinals[middle] : nullptr;
        const bool is_forwarded = function != nullptr && *function - where.VirtualAddress < where.Size;
        return is_forwarded ? nullptr : function;
      }
      if (order < 0)
        high = middle;
      else
        low = middle + 1;
    }
    return nullptr;
  }

  /// Calls f(slot) for each slot that has the address of an imported function, or will have it when
  /// that is first called.
  template <class F>
  void for_each_import(F f) const noexcept {
    const DWORD imports = directory(IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress;
    for (DWORD i = 0; imports != 0; ++i) {
      const auto* const library = at<IMAGE_IMPORT_DESCRIPTOR>(imports + i * DWORD{sizeof(IMAGE_IMPORT_DESCRIPTOR)});
      if (library == nullptr || library->FirstThunk == 0) break;
      for_each_slot(library->FirstThunk, f);
    }
    const DWORD delayed = directory(IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT).VirtualAddress;
    for (DWORD i = 0; delayed != 0; ++i) {
      const auto* const library =
          at<IMAGE_DELAYLOAD_DESCRIPTOR>(delayed + i * DWORD{sizeof(IMAGE_DELAYLOAD_DESCRIPTOR)});
      if (library == nullptr || library->ImportAddressTableRVA == 0) break;
      for_each_slot(library->ImportAddressTableRVA, f);
    }
  }

 private:
  template <class F>
  void for_each_slot(DWORD first, F f) const noexcept {
    for (DWORD i = 0;; ++i) {
      void** const slot = at<void*>(first + i * DWORD{sizeof(void*)});
      if (slot == nullptr || *slot == nullptr) return;
      f(slot);
    }
  }

  [[nodiscard]] IMAGE_DATA_DIRECTORY directory(unsigned which) const noexcept {
    if (headers_ == nullptr || which >= headers_->OptionalHeader.NumberOfRvaAndSizes) return {};
    return headers_->OptionalHeader.DataDirectory[which];
  }

  /// `n` objects, `offset` bytes from begin(); null: they are not within the module.
  template <class T>
  [[nodiscard]] T* at(DWORD offset, std::size_t n = 1) const noexcept {
    const bool is_within = offset != 0 && offset < bytes_ && n <= (bytes_ - offset) / sizeof(T);
    return is_within ? reinterpret_cast<T*>(base_ + offset) : nullptr;
  }

  std::byte* base_;
  std::size_t bytes_ = 0;
  const IMAGE_NT_HEADERS* headers_ = nullptr;
};

}  // namespace heapwright::process
