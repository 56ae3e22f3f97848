// The page map answers for any 64-bit value: a tagged pointer, an address of the kernel, garbage.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include <heapwright/heap/page_map.hpp>
#include <heapwright/platform/native.hpp>

#include "addresses.hpp"

namespace heapwright {
namespace {

class PageMap : public ::testing::Test {
 protected:
  PageMap() {
    heap_figures figures;
    EXPECT_TRUE(leaves_.reserve(1, figures));
    map_->cover(page_, heap_page, leaves_);
    map_->set_tag(page_, large_tag);
    map_->set_span(page_, &span_);
  }
  ~PageMap() override {
    map_->unmap_all();
    leaves_.unmap_all();
  }

  void* const page_ = reinterpret_cast<void*>(0x7FFF'FFFF'F000);
  span span_{};
  page_map<native_os, false>::spare_leaves leaves_;
  const std::unique_ptr<page_map<native_os, false>> map_ = std::make_unique<page_map<native_os, false>>();
};

TEST_F(PageMap, KnowsWhatItCovers) {
  EXPECT_EQ(map_->tag(page_), large_tag);
  EXPECT_EQ(map_->span_at(page_), &span_);
}

TEST_F(PageMap, KnowsNoAddressBeyond48Bits) {
  for (const void* p : testing::addresses_beyond_48_bits(page_)) {
    EXPECT_EQ(map_->tag(p), 0U) << p;
    EXPECT_EQ(map_->span_at(p), nullptr) << p;
  }
}

}  // namespace
}  // namespace heapwright
