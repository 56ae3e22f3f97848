// libFuzzer: the input is what is wrong with a segment (patched_segment.hpp): names that are no
// text, counts beyond all bounds. Whatever viewers are told of it can be read: views are JSON,
// metrics and tables keep their lines, profiles are profile.proto with texts in UTF-8.
#include "views.hpp"

#include <algorithm>
#include <string_view>

#include <zlib.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "patched_segment.hpp"
#include "profile.hpp"

using namespace heapwright;
using namespace heapwright::tool;
using fuzzing::require;

namespace {

void require_utf8(const std::string& text) {
  (void)nlohmann::json(text).dump();  // throws
}

void require_json(const std::string& text) { (void)nlohmann::json::parse(text); }

void require_table(const std::string& text) {
  require_utf8(text);
  std::size_t columns = 0, in_row = 1;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == ',') ++in_row;
    if (c != '\n') continue;
    if (columns == 0) columns = in_row;
    require(in_row == columns);
    in_row = 1;
  }
  require(!is_quoted && text.ends_with('\n'));
}

void require_metrics(const std::string& text) {
  require_utf8(text);
  require(text.ends_with('\n') || text.empty());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    require(line.starts_with("heapwright_") || line.starts_with("# "));
    require(line.find(' ') != std::string_view::npos);
  }
}

std::string unzipped(const std::string& bytes) {
  z_stream stream{};
  std::string input = bytes, result(4 << 20, '\0');
  require(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  require(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(stream.total_out);
  inflateEnd(&stream);
  return result;
}

/// Field 6 of a profile is its table of texts; others refer to it by position, as functions (5) do
/// with 2, 3 and 4.
void require_profile(const std::string& bytes) {
  const std::string profile = unzipped(bytes);
  std::uint64_t texts = 0, highest = 0;
  for (protozero::pbf_reader fields(profile); fields.next();) {
    if (fields.tag() == 6) {
      require_utf8(fields.get_string());
      ++texts;
    } else if (fields.tag() == 5) {
      for (protozero::pbf_reader function = fields.get_message(); function.next();) {
        const std::uint64_t value = function.get_uint64();
        if (function.tag() >= 2 && function.tag() <= 4) highest = std::max(highest, value);
      }
    } else {
      fields.skip();
    }
  }
  require(highest < texts);
}

void require_profiles(watched_process& process) {
  const segment::snapshot figures = process.now()->figures;
  symbolizer symbols(figures.modules, figures.process.process_id);
  const std::vector<segment::stack_figures> stacks = process.stacks().figures;
  for (const heap_measure measure : {heap_measure::inuse_space, heap_measure::alloc_objects})
    require_utf8(collapsed_stacks(stacks, symbols, measure));
  require_profile(
      pprof_profile(stacks, symbols, {.interval = figures.process.interval, .program = figures.process.program}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  static fuzzing::patched_segment segment;
  std::optional<watched_process> process;
  try {
    process.emplace(segment::segment_reader(segment.change(data, length)), false);
  } catch (const segment::bad_segment&) {
    return 0;
  }
  require_json(state_view(*process));
  require_json(cells_view(*process));
  require_json(history_view(*process, 0, 100));
  const auto value = static_cast<stack_value>(length % 4);
  const auto detail = static_cast<frame_detail>(length / 4 % 3);
  require_json(tree_view(*process, {.value = value, .by = detail, .folds_libraries = length % 8 < 4, .most = 50}));
  require_json(sites_view(*process, {.value = value, .most = 50}));
  require_json(site_history_view(*process, "", 10));
  require_json(leaks_view(*process, 50));
  require_json(memory_view(*process));
  require_json(mistakes_view(*process));
  require_metrics(metrics_view(*process));
  require_table(classes_csv(*process));
  require_table(threads_csv(*process));
  require_table(history_csv(*process));
  require_table(sites_csv(*process));
  require_profiles(*process);
  return 0;
}
