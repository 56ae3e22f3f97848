// Heap profiles as OTLP has them: opentelemetry-proto's profiles, v1development, in the form of its
// version 1.10. These are not stable yet: each version may change the numbers of fields.
//
// A request has one dictionary for all its profiles. What they share is told there once, and named
// by its place in one of the dictionary's tables.
//
// Invariants: the first entry of each table is an empty one, which stands for "none"; a profile has
// no two samples with the same stack.
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

// The numbers of fields in profiles.proto, profiles_service.proto, common.proto and resource.proto.
using otlp_tag = protozero::pbf_tag_type;
enum class in_request : otlp_tag { resource_profiles = 1, dictionary };
enum class in_dictionary : otlp_tag {
  mapping_table = 1,
  location_table,
  function_table,
  link_table,
  string_table,
  attribute_table,
  stack_table
};
enum class in_resource_profiles : otlp_tag { resource = 1, scope_profiles };
enum class in_resource : otlp_tag { attributes = 1 };
enum class in_key_value : otlp_tag { key = 1, value };
enum class in_any_value : otlp_tag { string_value = 1, int_value = 3 };
enum class in_scope_profiles : otlp_tag { scope = 1, profiles };
enum class in_scope : otlp_tag { name = 1 };
enum class in_otlp_profile : otlp_tag { sample_type = 1, samples, time_unix_nano, duration_nano, period_type, period };
enum class in_otlp_type : otlp_tag { type_strindex = 1, unit_strindex };
enum class in_otlp_sample : otlp_tag { stack_index = 1, values = 4 };
enum class in_stack : otlp_tag { location_indices = 1 };
enum class in_otlp_mapping : otlp_tag {
  memory_start = 1,
  memory_limit,
  file_offset,
  filename_strindex,
  attribute_indices
};
enum class in_otlp_location : otlp_tag { mapping_index = 1, address, lines };
enum class in_otlp_line : otlp_tag { function_index = 1, line };
enum class in_otlp_function : otlp_tag { name_strindex = 1, system_name_strindex, filename_strindex };
enum class in_attribute : otlp_tag { key_strindex = 1, value };

/// Indices into a table of the dictionary; 0 is the empty entry.
using table_index = std::int32_t;

class otlp_writer {
 public:
  otlp_writer(symbolizer& symbols, const profile_options& options) : symbols_(symbols), options_(options) {
    for (const auto table : {in_dictionary::mapping_table, in_dictionary::location_table, in_dictionary::function_table,
                             in_dictionary::link_table, in_dictionary::attribute_table, in_dictionary::stack_table})
      dictionary_.add_message(table, std::string());
    dictionary_.add_string(in_dictionary::string_table, "");
  }

  std::string write(const std::vector<segment::stack_figures>& stacks, const profile_resource& resource) {
    for (const segment::stack_figures& s : stacks) add(s);
    std::string request;
    protozero::pbf_builder<in_request> out(request);
    {
      protozero::pbf_builder<in_resource_profiles> of_process(out, in_request::resource_profiles);
      add_resource(of_process, resource);
      protozero::pbf_builder<in_scope_profiles> of_scope(of_process, in_resource_profiles::scope_profiles);
      protozero::pbf_builder<in_scope>(of_scope, in_scope_profiles::scope).add_string(in_scope::name, "heapwright");
      for (std::size_t i = 0; i < heap_measures.size(); ++i) add_profile(of_scope, i);
    }
    out.add_message(in_request::dictionary, dictionary_data_);
    return request;
  }

 private:
  table_index text(const std::string& s) {
    if (s.empty()) return 0;
    const auto [entry, is_new] = texts_.try_emplace(as_utf8(s), static_cast<table_index>(texts_.size() + 1));
    if (is_new) dictionary_.add_string(in_dictionary::string_table, entry->first);
    return entry->second;
  }

  /// Stacks with the same calls differ in the names of their threads, which are left out.
  void add(const segment::stack_figures& stack) {
    const heap_values values = values_of(stack, options_);
    if (values == heap_values{}) return;
    std::vector<table_index> locations;
    for (const std::uint64_t address : stack.addresses) locations.push_back(location_at(address));
    const auto [entry, is_new] = stacks_.try_emplace(locations, values);
    if (is_new) {
      protozero::pbf_builder<in_stack> out(dictionary_, in_dictionary::stack_table);
      out.add_packed_int32(in_stack::location_indices, locations.begin(), locations.end());
      in_order_.push_back(&entry->second);
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) entry->second[i] += values[i];
  }

  table_index location_at(std::uint64_t return_address) {
    const auto [entry, is_new] =
        locations_.try_emplace(return_address, static_cast<table_index>(locations_.size() + 1));
    const table_index index = entry->second;
    if (!is_new) return index;
    const location& where = symbols_.resolve(return_address);
    const table_index mapping = mapping_at(return_address);
    std::vector<std::pair<table_index, unsigned>> lines;
    for (const source_frame& frame : where.frames) lines.emplace_back(function_of(frame), frame.line);

    protozero::pbf_builder<in_otlp_location> out(dictionary_, in_dictionary::location_table);
    out.add_int32(in_otlp_location::mapping_index, mapping);
    if (!where.is_script) out.add_uint64(in_otlp_location::address, return_address - 1);  // within the call
    for (const auto& [function, number] : lines) {
      protozero::pbf_builder<in_otlp_line> line(out, in_otlp_location::lines);
      line.add_int32(in_otlp_line::function_index, function);
      line.add_int64(in_otlp_line::line, number);
    }
    return index;
  }

  table_index function_of(const source_frame& frame) {
    const auto key = std::make_pair(text(frame.function), text(frame.file));
    const auto [entry, is_new] = functions_.try_emplace(key, static_cast<table_index>(functions_.size() + 1));
    if (is_new) {
      protozero::pbf_builder<in_otlp_function> out(dictionary_, in_dictionary::function_table);
      out.add_int32(in_otlp_function::name_strindex, key.first);
      out.add_int32(in_otlp_function::system_name_strindex, key.first);
      out.add_int32(in_otlp_function::filename_strindex, key.second);
    }
    return entry->second;
  }

  table_index mapping_at(std::uint64_t return_address) {
    const segment::module_figures* const module = symbols_.module_of(return_address);
    if (module == nullptr) return 0;
    const auto [entry, is_new] =
        mappings_.try_emplace({module->begin, module->path}, static_cast<table_index>(mappings_.size() + 1));
    if (!is_new) return entry->second;
    const mapped_module about = symbols_.describe(*module);
    const table_index path = text(module->path);
    const std::array<table_index, 1> attributes{add_build_id(about.build_id)};
    protozero::pbf_builder<in_otlp_mapping> out(dictionary_, in_dictionary::mapping_table);
    out.add_uint64(in_otlp_mapping::memory_start, module->begin);
    out.add_uint64(in_otlp_mapping::memory_limit, module->end);
    out.add_uint64(in_otlp_mapping::file_offset, about.file_offset);
    out.add_int32(in_otlp_mapping::filename_strindex, path);
    if (attributes[0] != 0)
      out.add_packed_int32(in_otlp_mapping::attribute_indices, attributes.begin(), attributes.end());
    return entry->second;
  }

  /// 0: there is none.
  table_index add_build_id(const std::string& id) {
    if (id.empty()) return 0;
    const table_index key = text("process.executable.build_id.gnu");
    protozero::pbf_builder<in_attribute> out(dictionary_, in_dictionary::attribute_table);
    out.add_int32(in_attribute::key_strindex, key);
    protozero::pbf_builder<in_any_value>(out, in_attribute::value).add_string(in_any_value::string_value, id);
    return ++attributes_;
  }

  static void add_resource(protozero::pbf_builder<in_resource_profiles>& to, const profile_resource& resource) {
    protozero::pbf_builder<in_resource> out(to, in_resource_profiles::resource);
    for (const auto& [key, value] : resource.attributes) {
      protozero::pbf_builder<in_key_value> pair(out, in_resource::attributes);
      pair.add_string(in_key_value::key, as_utf8(key));
      protozero::pbf_builder<in_any_value>(pair, in_key_value::value)
          .add_string(in_any_value::string_value, as_utf8(value));
    }
    protozero::pbf_builder<in_key_value> pair(out, in_resource::attributes);
    pair.add_string(in_key_value::key, "process.pid");
    protozero::pbf_builder<in_any_value>(pair, in_key_value::value)
        .add_int64(in_any_value::int_value, resource.process_id);
  }

  void add_type(protozero::pbf_builder<in_otlp_profile>& to, in_otlp_profile as, const char* type, const char* unit) {
    const table_index type_text = text(type), unit_text = text(unit);
    protozero::pbf_builder<in_otlp_type> out(to, as);
    out.add_int32(in_otlp_type::type_strindex, type_text);
    out.add_int32(in_otlp_type::unit_strindex, unit_text);
  }

  void add_profile(protozero::pbf_builder<in_scope_profiles>& to, std::size_t measure) {
    protozero::pbf_builder<in_otlp_profile> out(to, in_scope_profiles::profiles);
    add_type(out, in_otlp_profile::sample_type, heap_measures[measure].type, heap_measures[measure].unit);
    for (std::size_t i = 0; i < in_order_.size(); ++i) {
      const std::array<std::int64_t, 1> value{(*in_order_[i])[measure]};
      if (value[0] == 0) continue;
      protozero::pbf_builder<in_otlp_sample> sample(out, in_otlp_profile::samples);
      sample.add_int32(in_otlp_sample::stack_index, static_cast<table_index>(i + 1));
      sample.add_packed_int64(in_otlp_sample::values, value.begin(), value.end());
    }
    out.add_fixed64(in_otlp_profile::time_unix_nano, options_.at_unix_ns - options_.duration_ns);
    out.add_uint64(in_otlp_profile::duration_nano, options_.duration_ns);
    add_type(out, in_otlp_profile::period_type, "space", "bytes");
    out.add_int64(in_otlp_profile::period, static_cast<std::int64_t>(options_.interval));
  }

  symbolizer& symbols_;
  const profile_options& options_;
  std::string dictionary_data_;
  protozero::pbf_builder<in_dictionary> dictionary_{dictionary_data_};
  std::unordered_map<std::string, table_index> texts_;
  std::unordered_map<std::uint64_t, table_index> locations_;
  std::map<std::pair<table_index, table_index>, table_index> functions_;
  std::map<std::pair<std::uint64_t, std::string>, table_index> mappings_;
  table_index attributes_ = 0;
  std::map<std::vector<table_index>, heap_values> stacks_;
  std::vector<const heap_values*> in_order_;  ///< of stacks_, as the dictionary has them
};

}  // namespace

std::string otlp_profiles(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                          const profile_options& options, const profile_resource& resource) {
  return gzipped(otlp_writer(symbols, options).write(stacks, resource));
}

}  // namespace heapwright::tool
