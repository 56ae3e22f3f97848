#include "given_server.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "failure.hpp"
#include "line_search.hpp"

namespace heapwright::tool {
namespace {

/// The keys of these in the JSON of `fit`.
constexpr std::string_view measured_anyway[] = {"wall", "cpu", "peak_rss", "end_rss", "steady_rss", "page_faults"};

}  // namespace

std::optional<server_plan> given_server(const server_options& options, double driver_limit_seconds) {
  if (options.driver.empty()) return std::nullopt;
  server_plan plan{options.driver,
                   {options.ready_port, options.ready_line, {}, options.ready_timeout_seconds},
                   driver_limit_seconds,
                   options.end_timeout_seconds};
  if (options.ready_port == 0 && options.ready_line.empty())
    throw failure(exit_code::bad_input,
                  "--driver: say how the server shows that it is ready, by --ready-port PORT or --ready-line REGEX");
  if (options.ready_port == 0) plan.ready.pattern = checked_regex("--ready-line", options.ready_line);
  for (const std::string& text : options.figures) {
    driver_figure figure(text);
    if (std::ranges::find(measured_anyway, figure.name()) != std::end(measured_anyway))
      throw failure(
          exit_code::bad_input,
          fmt::format("--figure: {} is measured anyway; give the driver's figure another name", figure.name()));
    if (std::ranges::find(plan.figures, figure.name(), &driver_figure::name) != plan.figures.end())
      throw failure(exit_code::bad_input, fmt::format("--figure: two figures are named {}", figure.name()));
    plan.figures.push_back(std::move(figure));
  }
  return plan;
}

}  // namespace heapwright::tool
