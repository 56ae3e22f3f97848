#include "shell_completion.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "help_text.hpp"

namespace heapwright::tool {
namespace {

enum class completed {
  nothing,
  files,
  commands,
  processes,
  words,
  words_or_files,
  list  // words with commas between
};

struct completion {
  completed by = completed::nothing;
  std::string words;
};

constexpr const char* mallocs = "glibc heapwright jemalloc mimalloc tcmalloc tbb";

/// Of a value, or of a word that is no option, by its name in the help.
completion completion_of(const std::string& kind) {
  for (const char* const file : {"FILE", "FOLDER", "LIB", "HEADER", "TRACE", "BEFORE", "AFTER"})
    if (kind == file) return {completed::files, ""};
  if (kind == "COMMAND") return {completed::commands, ""};
  if (kind == "GOAL") return {completed::words, "time memory both latency"};
  if (kind == "NAMES") return {completed::list, mallocs};
  if (kind == "PID") return {completed::processes, ""};
  if (kind == "WHAT") return {completed::words, "info dump slice"};
  return {};
}

completion completion_of(const CLI::Option& option) {
  if (option.get_name() == "--baseline") return {completed::words, mallocs};
  if (option.get_name() == "--with") return {completed::words_or_files, fmt::format("{} hardened", mallocs)};
  return completion_of(option.get_positional() ? option.get_name() : kind_of_value(option));
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

/// "-o" and "--output"; a flag that may have a value, with each.
std::vector<std::string> names_of(const CLI::Option& option) {
  if (option.get_name() == "--stats") return {"--stats", "--stats=all"};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back('-' + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

/// All words from the first that is no option are those of a command.
bool takes_command(const CLI::App& app) {
  return std::ranges::any_of(positionals_of(app),
                             [](const CLI::Option* option) { return option->get_name() == "COMMAND"; });
}

/// In single quotes of a shell. `quote`: how a single quote stands between them.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string(quote) : std::string(1, c);
  return result + '\'';
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const one : app.get_subcommands({})) names.push_back(one->get_name());
  return names;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  constexpr std::string_view before = R"sh(# Completion for bash, made from what heapwright --help is made from.
_heapwright() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options values positional takes_command i begin word behind=
  COMPREPLY=()
  # --option=value is three words.
  [[ $prev == = ]] && behind== prev=${COMP_WORDS[COMP_CWORD-2]}
  [[ $cur == = ]] && behind== cur=
  if ((COMP_CWORD == 1)); then
    _heapwright_by "words:)sh";
  constexpr std::string_view after_names = R"sh( help --help --version"
    return
  fi
  case ${COMP_WORDS[1]} in
)sh";
  constexpr std::string_view after = R"sh(    help) _heapwright_by "words:${subcommands[*]}"; return ;;
    *) return ;;
  esac
  # Where the first word is that is no option.
  begin=
  for ((i = 2; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case $word in
      --) begin=$((i + 1)); break ;;
      -*)
        if [[ $values == *"|$word="* ]]; then
          [[ ${COMP_WORDS[i+1]} == = ]] && ((++i))
          ((++i))
        fi
        ;;
      =) ((++i)) ;;
      *) begin=$i; break ;;
    esac
  done
  if [[ -n $begin && -n $takes_command ]]; then
    if ((begin < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
      _command_offset "$begin"
    else
      _heapwright_by "$([[ $begin == "$COMP_CWORD" ]] && echo commands: || echo files:)"
    fi
  elif [[ $values == *"|$prev="* ]]; then
    word=${values#*"|$prev="}
    _heapwright_by "${word%%|*}"
  elif [[ -n $behind && $prev == --stats ]]; then
    _heapwright_by words:all
  elif [[ -n $behind ]]; then
    _heapwright_by files:
  elif [[ $cur == -* ]]; then
    _heapwright_by "words:$options"
  elif [[ -z $begin ]]; then
    _heapwright_by "$positional"
  else
    _heapwright_by files:
  fi
}

# By "words:a b", "words_or_files:a b", "list:a b" (with commas between), "files:", "commands:" or
# "processes:", which may have left a file.
_heapwright_by() {
  local begun= left= word
  case $1 in
    words:*) mapfile -t COMPREPLY < <(compgen -W "${1#words:}" -- "$cur") ;;
    words_or_files:*)
      compopt -o filenames 2>/dev/null
      # Files only behind a first letter: all that are there would hide the words.
      mapfile -t COMPREPLY < <(compgen -W "${1#words_or_files:}" -- "$cur"; [ -z "$cur" ] || compgen -f -- "$cur")
      ;;
    list:*)
      [[ $cur == *,* ]] && begun=${cur%,*},
      for word in ${1#list:}; do [[ ,$begun == *",$word,"* ]] || left+=" $word"; done
      mapfile -t COMPREPLY < <(compgen -P "$begun" -W "$left" -- "${cur##*,}")
      ;;
    files:) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    processes:)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur"; compgen -f -- "$cur")
      ;;
    commands:) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -d -- "$cur") ;;
  esac
}

complete -F _heapwright heapwright
)sh";
  const auto said = [](const completion& c) -> std::string {
    switch (c.by) {
      case completed::nothing: return "none:";
      case completed::files: return "files:";
      case completed::commands: return "commands:";
      case completed::processes: return "processes:";
      case completed::words: return "words:" + c.words;
      case completed::words_or_files: return "words_or_files:" + c.words;
      case completed::list: return "list:" + c.words;
    }
    return {};
  };
  std::string cases;
  for (const CLI::App* const one : app.get_subcommands({})) {
    std::vector<std::string> names;
    std::string values = "|";
    for (const CLI::Option* const option : options_of(*one))
      for (const std::string& name : names_of(*option)) {
        names.push_back(name);
        if (!is_flag(*option)) values += fmt::format("{}={}|", name, said(completion_of(*option)));
      }
    const auto positionals = positionals_of(*one);
    cases += fmt::format("    {}) options='{}' values='{}' positional='{}' takes_command={} ;;\n", one->get_name(),
                         fmt::join(names, " "), values,
                         positionals.empty() ? "none:" : said(completion_of(*positionals.front())),
                         takes_command(*one) ? "yes" : "");
  }
  std::string text = fmt::format("{}{}{}{}{}", before, fmt::join(subcommands_of(app), " "), after_names, cases, after);
  const std::string_view list = "${subcommands[*]}";
  return text.replace(text.find(list), list.size(), fmt::format("{}", fmt::join(subcommands_of(app), " ")));
}

std::string zsh_completion(const CLI::App& app) {
  const auto described = [](std::string_view text) {
    std::string result;
    for (const char c : text) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
      result += c;
    }
    return result;
  };
  const auto action = [](const completion& c) -> std::string {
    switch (c.by) {
      case completed::nothing: return " ";
      case completed::files: return "_files";
      case completed::commands: return "_command_names -e";
      case completed::processes: return "{ compadd - /proc/<->(N:t); _files }";
      case completed::words: return fmt::format("({})", c.words);
      case completed::words_or_files: return fmt::format("{{ compadd - {}; _files }}", c.words);
      case completed::list: return fmt::format("_sequence compadd - {}", c.words);
    }
    return {};
  };
  std::string names, cases;
  for (const CLI::App* const one : app.get_subcommands({})) {
    names += fmt::format("    {}\n", quoted(one->get_name() + ":" + described(one->get_description()), "'\\''"));
    cases += fmt::format("    {})\n      _arguments -S", one->get_name());
    for (const CLI::Option* const option : options_of(*one)) {
      for (const std::string& name : names_of(*option)) {
        const bool has_value = !is_flag(*option), is_long = name.starts_with("--");
        const std::string spec =
            fmt::format("*{}{}[{}]{}", name, has_value ? (is_long ? "=" : "") : "", described(shown_text(*option)),
                        has_value ? fmt::format(":{}:{}", kind_of_value(*option), action(completion_of(*option))) : "");
        cases += " \\\n        " + quoted(spec, "'\\''");
      }
    }
    for (const CLI::Option* const word : positionals_of(*one))
      cases +=
          word->get_name() == "COMMAND"
              ? std::string(
                    " \\\n        '*::COMMAND:{ [[ $words[1] == -- ]] && { shift words; ((CURRENT--)) }; _normal }'")
              : fmt::format(" \\\n        ':{}:{}'", word->get_name(), action(completion_of(*word)));
    cases += "\n      ;;\n";
  }
  return fmt::format(R"sh(#compdef heapwright
# Completion for zsh, made from what heapwright --help is made from.
local curcontext=$curcontext state line
local -a subcommands=(
{}    'help:The options of a subcommand'
)
_arguments -C '(- *)'{{-h,--help}}'[This text]' '(- *)--version[Tell version, revision and how this was built]' \
  ':SUBCOMMAND:->subcommand' '*::ARGUMENT:->argument'
case $state in
  subcommand) _describe -t commands SUBCOMMAND subcommands ;;
  argument)
    curcontext=${{curcontext%:*}}-$words[1]:
    case $words[1] in
    help) _describe -t commands SUBCOMMAND subcommands ;;
{}    esac
    ;;
esac
)sh",
                     names, cases);
}

std::string fish_completion(const CLI::App& app) {
  const auto action = [](const completion& c) -> std::string {
    switch (c.by) {
      case completed::nothing: return "-x";
      case completed::files: return "-r -F";
      case completed::commands: return "-x -a '(__fish_complete_command)'";
      case completed::processes: return "-F -a '(__fish_complete_pids)'";
      case completed::words: return fmt::format("-x -a '{}'", c.words);
      case completed::words_or_files: return fmt::format("-r -F -a '{}'", c.words);
      case completed::list: return fmt::format("-x -a '(__fish_complete_list , \"printf %s\\\\\\\\n {}\")'", c.words);
    }
    return {};
  };
  std::string text =
      "# Completion for fish, made from what heapwright --help is made from.\n"
      "function __heapwright_runs -d 'Whether this subcommand is typed'\n"
      "  set -l words (commandline -opc)\n"
      "  test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
      "end\n"
      "complete -c heapwright -f\n"
      "complete -c heapwright -n __fish_use_subcommand -s h -l help -d 'This text'\n"
      "complete -c heapwright -n __fish_use_subcommand -l version -d 'Tell version, revision and how this was built'\n"
      "complete -c heapwright -n __fish_use_subcommand -a help -d 'The options of a subcommand'\n";
  text +=
      fmt::format("complete -c heapwright -n '__heapwright_runs help' -a '{}'\n", fmt::join(subcommands_of(app), " "));
  for (const CLI::App* const one : app.get_subcommands({})) {
    text += fmt::format("complete -c heapwright -n __fish_use_subcommand -a {} -d {}\n", one->get_name(),
                        quoted(one->get_description(), "\\'"));
    const std::string of_this = fmt::format("complete -c heapwright -n '__heapwright_runs {}'", one->get_name());
    std::vector<std::string> with_value;
    for (const CLI::Option* const option : options_of(*one)) {
      std::string names;
      for (const std::string& name : option->get_snames()) names += " -s " + name;
      for (const std::string& name : option->get_lnames()) names += " -l " + name;
      text += fmt::format("{}{}{}{} -d {}\n", of_this, names, is_flag(*option) ? "" : " ",
                          is_flag(*option) ? "" : action(completion_of(*option)), quoted(shown_text(*option), "\\'"));
      if (is_flag(*option)) continue;
      const auto own = names_of(*option);
      with_value.insert(with_value.end(), own.begin(), own.end());
    }
    // Without options: the subcommand is the first word after heapwright.
    const auto at_word = [&](std::string_view comparison) {
      return fmt::format("complete -c heapwright -n '__heapwright_runs {}; and test (count (commandline -opc)) {} 2'",
                         one->get_name(), comparison);
    };
    for (const CLI::Option* const word : positionals_of(*one)) {
      if (word->get_name() == "COMMAND")
        // It drops the first of these words that look like its own.
        text += fmt::format("{} -x -a '(__fish_complete_subcommand --fcs-skip=2 - {})'\n", of_this,
                            fmt::join(with_value, " "));
      else if (const completion c = completion_of(*word); c.by == completed::words)
        text += fmt::format("{} -a '{}'\n", at_word("-eq"), c.words);
      else if (word != positionals_of(*one).front())
        text += fmt::format("{} -F\n", at_word("-gt"));
      else
        text += fmt::format("{} {}\n", of_this, c.by == completed::processes ? action(c) : "-F");
    }
  }
  return text;
}

}  // namespace heapwright::tool
