#include "cli/completion_command.h"

#include <fmt/format.h>

#include <CLI/Validators.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

namespace heaptape::cli {

using format::CommandContext;
using format::ExitCode;
using format::Result;

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? word : " " + word;
  }
  return line;
}

std::string long_options(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
  }
  return joined(words);
}

// "{none,caller}" in an option's type is its set of values (CLI::IsMember); empty: any value.
std::string fixed_values(const CLI::Option& option) {
  std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) {
    return {};
  }
  std::string values = type.substr(open + 1, close - open - 1);
  std::replace(values.begin(), values.end(), ',', ' ');
  return values;
}

std::string value_cases(const CLI::App& verb) {
  std::string cases;
  for (const CLI::Option* option : verb.get_options()) {
    if (const std::string values = fixed_values(*option); !values.empty() && !option->get_lnames().empty()) {
      cases += fmt::format("    {}:--{}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                           verb.get_name(), option->get_lnames().front(), values);
    }
  }
  return cases;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> verbs;
  std::string option_cases;
  std::string values;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    option_cases += fmt::format("    {}) words='{}' ;;\n", verb->get_name(), long_options(*verb));
    values += value_cases(*verb);
  }
  return fmt::format(R"(# bash completion for heaptape; load it with: source <(heaptape completion bash)
_heaptape() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} verb='' words='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ ${{COMP_WORDS[at]}} != -* ]]; then verb=${{COMP_WORDS[at]}}; break; fi
  done
  COMPREPLY=()
  case $verb:$previous in
{}  esac
  case $verb in
    '') words='{} {}' ;;
{}  esac
  if [[ -z $verb || $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -F _heaptape heaptape
)",
                     values, joined(verbs), long_options(app), option_cases);
}

void add_completion_command(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "Which shell")->required()->check(CLI::IsMember({"bash"}));
  verb->footer(
      "Examples:\n"
      "  source <(heaptape completion bash)\n"
      "  heaptape completion bash > /etc/bash_completion.d/heaptape");
  format::on_run(*verb, context, [&app, shell]() -> Result<ExitCode> {
    const std::string script = *shell == "bash" ? bash_completion(app) : std::string();
    std::fwrite(script.data(), 1, script.size(), stdout);
    return ExitCode::fine;
  });
}

}  // namespace heaptape::cli
