// A plan of a trace in which the number of a stack is that of its call site.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mapped_plan.hpp"
#include "plan_builder.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

class planned_sites {
 public:
  static constexpr std::size_t sites = 8;

  explicit planned_sites(const std::string& trace) : mapped_(written(trace)) {}

  [[nodiscard]] const mapped_plan& plan() const { return mapped_; }

 private:
  int written(const std::string& trace) {
    const auto quiet = [](double) {};
    std::vector<stack_site> stacks(sites + 1);
    for (std::uint16_t i = 1; i <= sites; ++i) stacks[i].site = i;
    plan_builder(trace, std::nullopt, quiet).build(file_.fd(), quiet, false, stacks);
    return file_.fd();
  }

  scratch_file file_;
  mapped_plan mapped_;
};

}  // namespace heapwright::tool
