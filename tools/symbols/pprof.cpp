// profile.proto as pprof's own repository describes it: every text is a number into a table,
// locations and functions are numbered from 1.
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include <protozero/pbf_builder.hpp>

#include "gzip.hpp"
#include "profile.hpp"
#include "utf8.hpp"

namespace heapwright::tool {
namespace {

// The numbers of fields in profile.proto.
using tag = protozero::pbf_tag_type;
enum class in_profile : tag {
  sample_type = 1,
  sample,
  mapping,
  location,
  function,
  string_table,
  time_nanos = 9,
  duration_nanos,
  period_type,
  period,
  default_sample_type = 14
};
enum class in_value_type : tag { type = 1, unit };
enum class in_sample : tag { location_id = 1, value, label };
enum class in_label : tag { key = 1, str };
enum class in_mapping : tag {
  id = 1,
  memory_start,
  memory_limit,
  file_offset,
  filename,
  build_id,
  has_functions,
  has_filenames,
  has_line_numbers,
  has_inline_frames
};
enum class in_location : tag { id = 1, mapping_id, address, line };
enum class in_line : tag { function_id = 1, line };
enum class in_function : tag { id = 1, name, system_name, filename };

class profile_writer {
 public:
  profile_writer(symbolizer& symbols, const profile_options& options) : symbols_(symbols), options_(options) {
    static_cast<void>(text(""));  // the first must be empty
  }

  std::string write(const std::vector<segment::stack_figures>& stacks) {
    for (const measure_text& m : heap_measures) add_value_type(in_profile::sample_type, m.type, m.unit);
    if (!options_.program.empty()) add_program();
    for (const segment::stack_figures& s : stacks) add_sample(s);
    for (const mapping& m : mappings_) add_mapping(m);
    out_.add_int64(in_profile::time_nanos, static_cast<std::int64_t>(options_.at_unix_ns));
    out_.add_int64(in_profile::duration_nanos, static_cast<std::int64_t>(options_.duration_ns));
    add_value_type(in_profile::period_type, "space", "bytes");
    out_.add_int64(in_profile::period, static_cast<std::int64_t>(options_.interval));
    for (const measure_text& m : heap_measures)
      if (m.measure == options_.shown_first) out_.add_int64(in_profile::default_sample_type, text(m.type));
    for (const std::string* s : texts_) out_.add_string(in_profile::string_table, *s);
    return std::move(data_);
  }

 private:
  struct mapping {
    segment::module_figures module;
    bool is_known = false;  ///< there are names of functions in it
  };

  std::int64_t text(const std::string& s) {
    const auto [entry, is_new] = text_ids_.try_emplace(as_utf8(s), static_cast<std::int64_t>(texts_.size()));
    if (is_new) texts_.push_back(&entry->first);
    return entry->second;
  }

  void add_value_type(in_profile as, const char* type, const char* unit) {
    const std::int64_t type_text = text(type), unit_text = text(unit);
    protozero::pbf_builder<in_value_type> out(out_, as);
    out.add_int64(in_value_type::type, type_text);
    out.add_int64(in_value_type::unit, unit_text);
  }

  void add_sample(const segment::stack_figures& stack) {
    const heap_values values = values_of(stack, options_);
    if (values == heap_values{}) return;
    std::vector<std::uint64_t> locations;
    for (const std::uint64_t address : stack.addresses) locations.push_back(location_id(address));
    const bool has_name = stack.name_of_threads - 1 < options_.thread_names.size();
    const std::int64_t key = has_name ? text("thread") : 0;
    const std::int64_t name = has_name ? text(options_.thread_names[stack.name_of_threads - 1]) : 0;
    protozero::pbf_builder<in_sample> out(out_, in_profile::sample);
    out.add_packed_uint64(in_sample::location_id, locations.begin(), locations.end());
    out.add_packed_int64(in_sample::value, values.begin(), values.end());
    if (!has_name) return;
    protozero::pbf_builder<in_label> label(out, in_sample::label);
    label.add_int64(in_label::key, key);
    label.add_int64(in_label::str, name);
  }

  std::uint64_t location_id(std::uint64_t return_address) {
    const auto [entry, is_new] = location_ids_.try_emplace(return_address, location_ids_.size() + 1);
    const std::uint64_t id = entry->second;
    if (!is_new) return id;
    const location& where = symbols_.resolve(return_address);
    const std::uint64_t mapping_number = mapping_id(return_address, where.is_known);
    std::vector<std::pair<std::uint64_t, unsigned>> lines;
    for (const source_frame& frame : where.frames) lines.emplace_back(function_id(frame), frame.line);

    protozero::pbf_builder<in_location> out(out_, in_profile::location);
    out.add_uint64(in_location::id, id);
    if (mapping_number != 0) out.add_uint64(in_location::mapping_id, mapping_number);
    if (!where.is_script) out.add_uint64(in_location::address, return_address - 1);  // within the call
    for (const auto& [function, number] : lines) {
      protozero::pbf_builder<in_line> line(out, in_location::line);
      line.add_uint64(in_line::function_id, function);
      line.add_int64(in_line::line, number);
    }
    return id;
  }

  std::uint64_t function_id(const source_frame& frame) {
    const auto key = std::make_pair(text(frame.function), text(frame.file));
    const auto [entry, is_new] = function_ids_.try_emplace(key, function_ids_.size() + 1);
    if (is_new) {
      protozero::pbf_builder<in_function> out(out_, in_profile::function);
      out.add_uint64(in_function::id, entry->second);
      out.add_int64(in_function::name, key.first);
      out.add_int64(in_function::system_name, key.first);
      out.add_int64(in_function::filename, key.second);
    }
    return entry->second;
  }

  std::uint64_t mapping_id(std::uint64_t return_address, bool is_known) {
    const segment::module_figures* const module = symbols_.module_of(return_address);
    if (module == nullptr) return 0;
    const std::uint64_t id = mapping_id(*module);
    mappings_[id - 1].is_known |= is_known;
    return id;
  }

  std::uint64_t mapping_id(const segment::module_figures& module) {
    const auto [entry, is_new] = mapping_ids_.try_emplace({module.begin, module.path}, mappings_.size() + 1);
    if (is_new) mappings_.push_back({module});
    return entry->second;
  }

  /// Also when no stack has an address in it.
  void add_program() {
    for (const segment::module_figures& m : symbols_.modules())
      if (m.path == options_.program) {
        mapping_id(m);
        return;
      }
  }

  void add_mapping(const mapping& m) {
    const mapped_module about = symbols_.describe(m.module);
    const std::int64_t path = text(m.module.path), id = text(about.build_id);
    protozero::pbf_builder<in_mapping> out(out_, in_profile::mapping);
    out.add_uint64(in_mapping::id, ++mappings_written_);
    out.add_uint64(in_mapping::memory_start, m.module.begin);
    out.add_uint64(in_mapping::memory_limit, m.module.end);
    out.add_uint64(in_mapping::file_offset, about.file_offset);
    out.add_int64(in_mapping::filename, path);
    out.add_int64(in_mapping::build_id, id);
    // pprof looks for names itself where there are none.
    for (const auto has : {in_mapping::has_functions, in_mapping::has_filenames, in_mapping::has_line_numbers,
                           in_mapping::has_inline_frames})
      out.add_bool(has, m.is_known);
  }

  symbolizer& symbols_;
  const profile_options& options_;
  std::string data_;
  protozero::pbf_builder<in_profile> out_{data_};
  std::unordered_map<std::string, std::int64_t> text_ids_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::uint64_t, std::uint64_t> location_ids_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> function_ids_;
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> mapping_ids_;
  std::vector<mapping> mappings_;
  std::uint64_t mappings_written_ = 0;
};

}  // namespace

std::string pprof_profile(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                          const profile_options& options) {
  return gzipped(profile_writer(symbols, options).write(stacks));
}

}  // namespace heapwright::tool
