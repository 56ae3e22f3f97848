// From the bytes of a segment to figures. Each answer begins with a fresh copy of the header, and
// uses only offsets from that copy.
#include "segment_reader.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <time.h>

#include "interpreted_code_records.hpp"
#include "sample_weight.hpp"
#include "segment_file.hpp"
#include "stack_records.hpp"

namespace heapwright::segment {
namespace {

std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// A container may share the folder of segments with this system, and no other files. Empty: the
/// program is the file of that name here, or cannot be looked at.
std::string root_of_container(const process_figures& process) {
  const auto file = [](const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 ? std::make_pair(about.st_dev, about.st_ino) : std::pair<dev_t, ino_t>();
  };
  if (process.state == process_state::exited || !is_there(process)) return {};
  const std::string folder = "/proc/" + std::to_string(process.process_id), root = folder + "/root";
  const auto program = file(folder + "/exe");
  const bool is_only_there =
      program.second != 0 && file(process.program) != program && file(root + process.program) == program;
  return is_only_there ? root : "";
}

/// Up to the first null, if there is one.
template <std::size_t Size>
std::string text_of(const std::array<char, Size>& text) {
  return std::string(text.begin(), std::find(text.begin(), text.end(), '\0'));
}

/// The link by which the program was started; empty: none. What lies in another folder is no such
/// link.
std::string shown_program_of(const segment_header& h) {
  const std::string path = text_of(h.program);
  if (path.size() + 1 >= h.program.size()) return {};
  const auto begin = h.program.begin() + static_cast<std::ptrdiff_t>(path.size()) + 1;
  const std::string name(begin, std::find(begin, h.program.end(), '\0'));
  if (name.empty() || name.find('/') != std::string::npos) return {};
  return path.substr(0, path.rfind('/') + 1) + name;
}

/// A number of blocks as the header's way of counting has it. It may be negative.
std::uint64_t blocks_in(std::uint64_t counted, const segment_header& h) noexcept {
  if ((h.counting.load(relaxed) & counting_is_of_samples) == 0) return counted;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(counted) / 1024);
}

process_figures process_of(const segment_header& h) {
  process_figures p;
  p.process_id = p.own_id = h.process_id;
  if (const std::uint32_t state = h.state.load(relaxed); state <= static_cast<std::uint32_t>(process_state::replaced))
    p.state = state == 0 ? process_state::running : static_cast<process_state>(state);
  p.started_ns = h.started_ns;
  p.started_unix_ns = h.started_unix_ns;
  p.ended_ns = h.ended_ns.load(relaxed);
  p.process_start = h.process_start;
  p.forked_from = h.forked_from;
  p.inherited_blocks = blocks_in(h.inherited_blocks, h);
  p.inherited_bytes = h.inherited_bytes;
  p.program = text_of(h.program);
  p.shown_program = shown_program_of(h);
  p.allocator = text_of(h.allocator);
  p.arguments = arguments_in({h.arguments.data(), std::min<std::size_t>(h.arguments_bytes, h.arguments.size())});
  const std::uint32_t counting = h.counting.load(relaxed);
  p.is_counting = (counting & counting_is_on) != 0;
  p.is_of_samples = (counting & counting_is_of_samples) != 0;
  p.live_variance = std::max(std::bit_cast<double>(h.live_variance.load(relaxed)), 0.0);
  for (unsigned c = 0; c < size_scale::count; ++c)
    p.class_live_variance[c] = std::max(std::bit_cast<double>(h.class_live_variance[c].load(relaxed)), 0.0);
  p.counting_since_ns = h.counting_since_ns.load(relaxed);
  const std::uint64_t interval = h.interval.load(relaxed);
  p.interval = interval & ~interval_adapts;
  p.interval_adapts = interval != p.interval;
  p.unseen_interval = unseen_interval(h);
  p.samples_all = samples_all(h);
  p.sampling_ns = h.sampling_ns.load(relaxed);
  p.processor_ns = h.processor_ns.load(relaxed);
  p.peak = h.peak.load(relaxed);
  p.peak_at_ns = h.peak_at_ns.load(relaxed);
  p.peak_grain = h.peak_grain;
  p.interpreter_at = h.interpreter_at.load(relaxed);
  p.threads_ever = h.threads_ever.load(relaxed);
  p.threads_folded = h.threads_folded.load(relaxed);
  p.lost_samples = h.lost_samples.load(relaxed);
  p.mistakes = h.mistakes.load(relaxed);
  p.why_not_recorded = h.why_not_recorded.load(relaxed);
  p.why_child_not_recorded = h.why_child_not_recorded.load(relaxed);
  for (unsigned c = 0; c < size_scale::count; ++c) p.class_peak[c] = h.class_peak[c].load(relaxed);
  const std::uint64_t marks = std::min<std::uint64_t>(h.mark_count.load(relaxed), h.marks.size());
  for (std::uint64_t i = 0; i < marks; ++i)
    if (const std::uint64_t at = h.marks[i].at_ns.load(relaxed); at != 0)
      p.marks.push_back({at, text_of(h.marks[i].name)});
  for (const named_meter& m : h.meters) {
    const auto state = static_cast<meter_state>(m.state.load(relaxed));
    const auto figure = [&m](std::size_t i) { return m.figures[i].load(relaxed); };
    if (state == meter_state::open || state == meter_state::closed)
      p.meters.push_back({text_of(m.name), state == meter_state::open, figure(0), figure(1), figure(2), figure(3),
                          figure(4), figure(5)});
  }
  for (const malloc_mapping& m : h.malloc_mappings)
    if (const std::uint64_t begin = m.begin.load(relaxed); begin != 0)
      p.malloc_mappings.push_back({begin, m.bytes.load(relaxed)});
  p.knows_malloc_mappings = !p.malloc_mappings.empty() && h.lost_mappings.load(relaxed) == 0;
  return p;
}

thread_figures thread_of(std::uint32_t index, const thread_slot& slot, const segment_header& h) {
  thread_figures t;
  t.slot = index;
  t.thread_id = slot.thread_id;
  t.state = static_cast<slot_state>(slot.state.load(relaxed));
  t.name = text_of(slot.name);
  t.began_ns = slot.began_ns.load(relaxed);
  t.ended_ns = slot.ended_ns.load(relaxed);
  t.stack_at = slot.stack_at;
  const auto net = static_cast<std::int64_t>(slot.net_bytes.load(relaxed));
  t.peak_net = std::max<std::uint64_t>(slot.peak_net.load(relaxed), net > 0 ? static_cast<std::uint64_t>(net) : 0);
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const class_counters& from = slot.classes[c];
    t.classes[c] = {blocks_in(from.allocations.load(relaxed), h), from.allocated_bytes.load(relaxed),
                    from.requested_bytes.load(relaxed), blocks_in(from.frees.load(relaxed), h),
                    from.freed_bytes.load(relaxed)};
  }
  return t;
}

std::vector<thread_figures> threads_of(const segment_file& file, const segment_header& h) {
  std::vector<thread_figures> threads;
  file.for_each_record(h.threads_at, std::uint64_t{h.thread_slots} * thread_slot_bytes, thread_slot_bytes,
                       [&](std::uint64_t index, const std::byte* bytes) {
                         const auto& slot = *reinterpret_cast<const thread_slot*>(bytes);
                         const std::uint32_t state = slot.state.load(relaxed);
                         if (state == 0 || state > static_cast<std::uint32_t>(slot_state::everyone)) return;
                         threads.push_back(thread_of(static_cast<std::uint32_t>(index), slot, h));
                       });
  return threads;
}

std::array<std::uint64_t, size_scale::count> freed_bytes_of(const segment_file& file, const segment_header& h) {
  std::array<std::uint64_t, size_scale::count> sums{};
  file.for_each_record(h.threads_at, std::uint64_t{h.thread_slots} * thread_slot_bytes, thread_slot_bytes,
                       [&](std::uint64_t, const std::byte* bytes) {
                         const auto& slot = *reinterpret_cast<const thread_slot*>(bytes);
                         for (unsigned c = 0; c < size_scale::count; ++c)
                           sums[c] += slot.classes[c].freed_bytes.load(relaxed);
                       });
  return sums;
}

/// What threads have not published yet may put what is live now above the peaks that are known.
/// `freed` was read after all threads were: at a moment in between, no less was live than what they
/// had allocated by then less what is freed by now.
void raise_peaks(snapshot& seen, const std::array<std::uint64_t, size_scale::count>& freed) {
  const auto classes = seen.by_class();
  std::uint64_t total = 0;  // unsigned: the figures of a damaged segment may add up to anything
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const std::uint64_t of_class = classes[c].allocated_bytes - freed[c];
    const auto live = static_cast<std::int64_t>(of_class);
    std::uint64_t& peak = seen.process.class_peak[c];
    if (live > static_cast<std::int64_t>(peak))
      peak = std::max(peak, certain_part(of_class, seen.process.class_live_variance[c]));
    total += of_class;
  }
  if (static_cast<std::int64_t>(total) <= static_cast<std::int64_t>(seen.process.peak)) return;
  const std::uint64_t certain = certain_part(total, seen.process.live_variance);
  if (certain <= seen.process.peak && seen.process.live_variance > 0) return;
  seen.process.peak = certain;
  // A process that has ended, or has become another program, had its peak before that.
  const std::uint64_t ended = seen.process.ended_ns;
  seen.process.peak_at_ns = ended != 0 ? std::min(ended, seen.at_ns) : seen.at_ns;
}

std::vector<module_figures> modules_of(const segment_file& file, const segment_header& h) {
  std::vector<module_figures> modules;
  const std::uint64_t count = std::min<std::uint64_t>(h.modules_used.load(relaxed), max_modules);
  file.for_each_record(modules_at, count * sizeof(module), sizeof(module), [&](std::uint64_t, const std::byte* bytes) {
    const auto& m = *reinterpret_cast<const module*>(bytes);
    if (m.begin < m.end && m.path[0] != '\0') modules.push_back({m.begin, m.end, m.base, text_of(m.path)});
  });
  const std::string program = text_of(h.program), shown = shown_program_of(h);
  for (module_figures& m : modules)
    if (m.path == program) m.shown_path = shown;
  return modules;
}

}  // namespace

std::vector<std::string> arguments_in(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto is_empty = [](const std::string& word) { return word.empty(); };
  if (list.size() > 1 && std::all_of(list.begin() + 1, list.end(), is_empty)) list.resize(list[0].empty() ? 0 : 1);
  return list;
}

class_figures& class_figures::operator+=(const class_figures& o) noexcept {
  allocations += o.allocations;
  allocated_bytes += o.allocated_bytes;
  requested_bytes += o.requested_bytes;
  frees += o.frees;
  freed_bytes += o.freed_bytes;
  return *this;
}

stack_figures& stack_figures::operator+=(const stack_figures& o) noexcept {
  samples += o.samples;
  live_samples += o.live_samples;
  allocations += o.allocations;
  allocated_bytes += o.allocated_bytes;
  frees += o.frees;
  freed_bytes += o.freed_bytes;
  short_lived += o.short_lived;
  short_lived_bytes += o.short_lived_bytes;
  freed_samples += o.freed_samples;
  // Unsigned: figures of a damaged segment may add up to anything.
  at_peak = static_cast<std::int64_t>(static_cast<std::uint64_t>(at_peak) + static_cast<std::uint64_t>(o.at_peak));
  allocated_variance += o.allocated_variance;
  freed_variance += o.freed_variance;
  thinned_samples += o.thinned_samples;
  thinned_bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(thinned_bytes) +
                                            static_cast<std::uint64_t>(o.thinned_bytes));
  thinned_blocks += o.thinned_blocks;
  thinned_variance += o.thinned_variance;
  interval = std::max(interval, o.interval);
  if (o.first_ns != 0 && (first_ns == 0 || o.first_ns < first_ns)) first_ns = o.first_ns;
  last_ns = std::max(last_ns, o.last_ns);
  for (unsigned i = 0; i < lifetime_buckets; ++i) lifetimes[i] += o.lifetimes[i];
  return *this;
}

double stack_figures::unseen() const noexcept {
  const double blocks = std::max(allocations, 0.0), live = static_cast<double>(live_bytes());
  const auto bytes = static_cast<double>(allocated_bytes);
  return std::max({unseen_weight(blocks > 0 ? bytes / blocks : 0, interval), bytes > 0 ? allocated_variance / bytes : 0,
                   live > 0 ? live_variance() / live : 0});
}

class_figures thread_figures::total() const noexcept {
  class_figures sum;
  for (const class_figures& c : classes) sum += c;
  return sum;
}

class_figures snapshot::total() const noexcept {
  class_figures sum;
  for (const thread_figures& t : threads) sum += t.total();
  return sum;
}

class_figures snapshot::own_total() const noexcept {
  class_figures own = total();
  if (process.forked_from == 0) return own;
  own.allocations -= std::min(own.allocations, process.inherited_blocks);
  own.allocated_bytes -= std::min(own.allocated_bytes, process.inherited_bytes);
  own.frees = std::min(own.frees, own.allocations);
  own.freed_bytes = std::min(own.freed_bytes, own.allocated_bytes);
  return own;
}

std::array<class_figures, size_scale::count> snapshot::by_class() const noexcept {
  std::array<class_figures, size_scale::count> sums;
  for (const thread_figures& t : threads)
    for (unsigned c = 0; c < size_scale::count; ++c) sums[c] += t.classes[c];
  return sums;
}

segment_reader::segment_reader(const std::filesystem::path& file, bool may_control)
    : file_(std::make_unique<segment_file>(file, may_control)), codes_(std::make_unique<interpreted_code_records>()) {
  ids_ = ids_here_of(*file_->header());
  // A path like /proc/PID/root/dev/shm/... leads into a container.
  const std::string& path = file.native();
  const auto root = path.find("/root/");
  if (path.starts_with("/proc/") && root != std::string::npos)
    root_ = path.substr(0, root + std::string_view("/root").size());
  else
    root_ = root_of_container(process());
}
segment_reader::segment_reader(segment_reader&&) noexcept = default;
segment_reader& segment_reader::operator=(segment_reader&&) noexcept = default;
segment_reader::~segment_reader() = default;

const std::filesystem::path& segment_reader::path() const noexcept { return file_->path(); }

process_figures segment_reader::described(const segment_header& h) const {
  process_figures p = process_of(h);
  if (ids_.process != 0) p.process_id = ids_.process;
  if (ids_.parent != 0) p.forked_from = ids_.parent;
  p.root = root_;
  return p;
}

process_figures segment_reader::process() const { return described(*file_->header()); }

snapshot segment_reader::read() const {
  snapshot result;
  std::array<std::uint64_t, size_scale::count> freed{};
  // A fold takes microseconds. One that takes longer has been stopped or killed in the middle, and
  // will not end for our waiting.
  constexpr unsigned attempts = 20;
  for (unsigned attempt = 1; attempt <= attempts; ++attempt) {
    const auto before = file_->header();
    const std::uint64_t sequence = before->fold_sequence.load(relaxed);
    result.at_ns = monotonic_ns();
    result.process = described(*before);
    result.threads = threads_of(*file_, *before);
    freed = freed_bytes_of(*file_, *before);
    result.is_torn = sequence % 2 != 0 || file_->header()->fold_sequence.load(relaxed) != sequence;
    if (!result.is_torn) break;
    if (attempt < attempts) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  const auto header = file_->header();
  result.modules = modules_of(*file_, *header);
  result.codes = codes_->read(*file_, *header);
  const std::uint64_t names = std::min(header->thread_names_used.load(relaxed), header->thread_names.size());
  for (std::uint64_t i = 0; i < names; ++i) result.thread_names.push_back(text_of(header->thread_names[i]));
  if (!result.is_torn) raise_peaks(result, freed);
  return result;
}

std::vector<stack_figures> segment_reader::stacks() const {
  return stack_records(*file_, *file_->header()).all().stacks;
}

std::vector<stack_figures> segment_reader::own_stacks() const {
  return stack_records(*file_, *file_->header(), stack_records::which::own).all().stacks;
}

std::vector<sample_figures> segment_reader::live_samples() const {
  std::vector<sample_figures> samples;
  const auto h = file_->header();
  file_->for_each_record(h->samples_at, h->samples_used.load(relaxed), sizeof(sample),
                         [&](std::uint64_t, const std::byte* bytes) {
                           const auto& s = *reinterpret_cast<const sample*>(bytes);
                           const std::uint64_t of = s.address_and_interval.load(relaxed);
                           const reference at_stack = s.at_stack.load(relaxed);
                           if (of == 0 || of == sample::being_written || at_stack == 0) return;
                           const auto code = static_cast<std::uint16_t>(of >> sample::address_bits);
                           const std::uint64_t bytes_of_block = s.bytes.load(relaxed);
                           const weight w = weight_of(bytes_of_block, sampling_interval::of_code(code));
                           samples.push_back({sample::address_of(of), bytes_of_block, w.bytes, s.at_ns.load(relaxed),
                                              static_cast<double>(w.blocks) / 1024, at_stack});
                         });
  // After the samples: a stack is complete before a sample names it.
  const auto ids = stack_records(*file_, *file_->header()).all().id_of_record;
  for (sample_figures& s : samples)
    if (const auto known = ids.find(s.at_stack); known != ids.end()) s.at_stack = known->second;
  return samples;
}

std::vector<misuse_report_figures> segment_reader::misuse_reports() const {
  std::vector<misuse_report_figures> reports;
  const auto h = file_->header();
  const std::uint64_t count = std::min<std::uint64_t>(h->misuse_reports_used.load(relaxed), max_misuse_reports);
  file_->for_each_record(
      h->misuse_reports_at, count * sizeof(misuse_report), sizeof(misuse_report),
      [&](std::uint64_t, const std::byte* bytes) {
        const auto& r = *reinterpret_cast<const misuse_report*>(bytes);
        const std::uint64_t at = r.at_ns.load(relaxed);
        const std::size_t length = std::min<std::size_t>(r.length.load(relaxed), r.text.size());
        if (at != 0 && length != 0)
          reports.push_back({at, r.thread_id, r.mistakes.load(relaxed), std::string(r.text.data(), length)});
      });
  return reports;
}

void segment_reader::set_counting(bool on) {
  segment_header& h = file_->control();
  const std::uint32_t was = h.counting.load();
  if (on && (was & counting_is_on) == 0) h.counting_since_ns.store(monotonic_ns());
  h.counting.store((was & ~counting_is_on) | (on ? counting_is_on : 0));
}

void segment_reader::set_interval(std::uint64_t bytes) {
  segment_header& h = file_->control();
  const std::uint64_t before = h.interval.load() & ~interval_adapts;
  if (bytes == 1 && before != 1) {
    const bool has_room = before != 0 && before < interval_unknown;
    h.interval_before_all.store(has_room ? static_cast<std::uint32_t>(before) : interval_unknown);
  }
  h.interval.store(bytes);
}

void segment_reader::adapt_interval() { file_->control().interval.fetch_or(interval_adapts); }

void segment_reader::reset_peak() { file_->control().reset.fetch_add(1); }

bool segment_reader::add_mark(const std::string& name) {
  segment_header& h = file_->control();
  const std::uint64_t index = h.mark_count.fetch_add(1);
  if (index >= h.marks.size()) return false;
  mark& m = h.marks[index];
  std::size_t length = std::min(name.size(), m.name.size() - 1);
  // Not in the middle of a character of UTF-8.
  while (length < name.size() && length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  std::copy_n(name.begin(), length, m.name.begin());
  m.at_ns.store(monotonic_ns(), std::memory_order_release);
  return true;
}

}  // namespace heapwright::segment
