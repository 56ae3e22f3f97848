#include "asked_stacks.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "other_run.hpp"

namespace heapwright::tool {
namespace {

/// What stacks of two runs have in common: their functions, and the names of the files these are
/// in.
void add_to_key(std::string& key, const place& p) {
  key += p.function + '\n' + p.module.substr(p.module.rfind('/') + 1) + '\n';
}

class compared_stacks {
 public:
  /// `unseen`: what a sample may stand for that was not seen of a stack, in either run.
  compared_stacks(places_book& book, double unseen) : book_(book), unseen_(unseen) {}

  void add_own(asked_stack stack) {
    std::string key = stack.figures.is_cut ? "cut\n" : "";
    for (const std::uint32_t number : stack.places) add_to_key(key, book_[number]);
    const auto [entry, is_new] = known_.emplace(std::move(key), stacks_.size());
    stack.value.grown = stack.value.value;
    if (is_new) return stacks_.push_back(std::move(stack));
    asked_stack& known = stacks_[entry->second];
    known.figures += stack.figures;
    known.value += stack.value;
  }

  void add_other(const other_stack& stack, measured then) {
    std::string key = stack.figures.is_cut ? "cut\n" : "";
    for (const place& p : stack.places) add_to_key(key, p);
    const auto [entry, is_new] = known_.emplace(std::move(key), stacks_.size());
    if (is_new) stacks_.push_back(only_there(stack));
    then.grown = -then.value;
    stacks_[entry->second].value += then;
  }

  [[nodiscard]] std::vector<asked_stack> take() {
    for (asked_stack& s : stacks_) {
      s.value.value = std::abs(s.value.grown);
      s.value.unseen = std::max(s.value.unseen, unseen_);
    }
    return std::move(stacks_);
  }

 private:
  asked_stack only_there(const other_stack& stack) {
    asked_stack made;
    made.figures.id = made.figures.first_with_calls = --next_id_;
    made.figures.is_cut = stack.figures.is_cut;
    for (const place& p : stack.places) made.places.push_back(book_.number_for(p));
    return made;
  }

  places_book& book_;
  double unseen_;
  std::vector<asked_stack> stacks_;
  std::unordered_map<std::string, std::size_t> known_;
  segment::reference next_id_ = 0xffffffff;  ///< far above those of a segment
};

}  // namespace

std::vector<asked_stack> asked_stacks(seen_stacks stacks, places_book& book, const stack_question& question) {
  const segment::snapshot& figures = stacks.seen->figures;
  std::vector<asked_stack> result;
  const double unseen = question.other ? std::max(question.other->unseen, unseen_of_unknown(figures.process)) : 0;
  compared_stacks compared(book, unseen);
  for (segment::stack_figures& s : stacks.figures) {
    if (!asks_for(question, figures.name_of_threads(s))) continue;
    const measured value = measure(s, question);
    auto places = places_of(s, figures, book);
    asked_stack stack{std::move(s), std::move(places), value};
    question.other ? compared.add_own(std::move(stack)) : result.push_back(std::move(stack));
  }
  if (!question.other) return result;
  // A process that has only begun has not met it yet.
  book.suppose_interpreter(question.other->interpreter);
  for (const other_stack& s : question.other->stacks)
    if (asks_for(question, s.threads)) compared.add_other(s, measure(s.figures, question));
  return compared.take();
}

}  // namespace heapwright::tool
