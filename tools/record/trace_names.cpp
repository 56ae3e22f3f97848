#include "trace_names.hpp"

#include "trace_reader.hpp"

namespace heapwright::tool {

trace_names::trace_names(const std::string& file, const function_patterns& wrappers) : wrappers_(wrappers) {
  trace::trace_reader reader(file);
  (void)trace::for_each_part(reader, [&](const trace::part& p) {
    if (const auto* const one = std::get_if<trace::process>(&p)) named(one->number).figures.process.own_id = one->id;
    if (const auto* const one = std::get_if<trace::module>(&p))
      named(one->process).figures.modules.push_back({one->begin, one->end, one->base, one->path});
    if (const auto* const one = std::get_if<trace::interpreted_code>(&p)) {
      named_process& of = named(one->process);
      of.figures.process.interpreter_at = one->interpreter_at;
      of.codes->insert_or_assign(
          one->id, segment::interpreted_code_figures{one->name, one->file, one->first_line,
                                                     static_cast<segment::line_table>(one->lines), one->table});
    }
  });
}

trace_names::named_process& trace_names::named(std::uint32_t process) {
  return processes_.try_emplace(process, wrappers_).first->second;
}

std::vector<std::uint32_t> trace_names::places_of(const trace::stack& s) {
  named_process& of = named(s.process);
  std::vector<std::uint32_t> all;
  for (const std::uint64_t address : s.addresses) {
    const auto here = of.book.at(address, of.figures);
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

}  // namespace heapwright::tool
