#include "other_run.hpp"

#include <filesystem>

#include "failure.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

other_process read_process(const segment::segment_reader& reader, const segment::snapshot& seen,
                           const std::string& file, const function_patterns& wrappers) {
  other_process result{std::filesystem::path(file).filename(), "", unseen_of_unknown(seen.process), {}};
  places_book book(wrappers);
  for (segment::stack_figures& s : reader.own_stacks()) {
    other_stack stack{std::move(s), {}, ""};
    stack.threads = seen.name_of_threads(stack.figures);
    for (const std::uint32_t number : places_of(stack.figures, seen, book)) stack.places.push_back(book[number]);
    result.stacks.push_back(std::move(stack));
  }
  result.interpreter = book.interpreter();
  return result;
}

}  // namespace

other_run::other_run(const std::string& file, const function_patterns& wrappers) {
  const opened_run opened(file);
  std::map<std::string, const saved_process*> chosen;
  std::map<std::string, std::uint64_t> peaks;
  std::string largest;
  try {
    for (const saved_process& p : opened.processes()) {
      const segment::process_figures process = segment::segment_reader(p.segment).process();
      const std::string program = std::filesystem::path(process.program).filename();
      if (const auto known = peaks.find(program); known != peaks.end() && known->second >= process.peak) continue;
      chosen[program] = &p;
      peaks[program] = process.peak;
      if (largest.empty() || process.peak > peaks[largest]) largest = program;
    }
    for (const auto& [program, process] : chosen) {
      const segment::segment_reader reader(process->segment);
      by_program_[program] = std::make_shared<const other_process>(read_process(reader, reader.read(), file, wrappers));
    }
  } catch (const segment::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
  largest_ = by_program_.at(largest);
}

std::shared_ptr<const other_process> other_run::of_program(const std::string& program) const {
  const auto found = by_program_.find(std::filesystem::path(program).filename());
  return found == by_program_.end() ? largest_ : found->second;
}

}  // namespace heapwright::tool
