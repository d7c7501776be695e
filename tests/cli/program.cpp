#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace heaptape::cli::testing {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

std::string contents(FILE* file) {
  std::string text;
  std::rewind(file);
  char piece[4096];
  for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) {
    text.append(piece, n);
  }
  return text;
}

Outcome run(const std::vector<std::string>& command) {
  const File out(std::tmpfile(), std::fclose);
  const File err(std::tmpfile(), std::fclose);
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(fileno(out.get()), STDOUT_FILENO);
    dup2(fileno(err.get()), STDERR_FILENO);
    setenv("heaptape", HEAPTAPE_PROGRAM, 1);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out.get()),
          contents(err.get())};
}

}  // namespace

Outcome heaptape(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), HEAPTAPE_PROGRAM);
  return run(arguments);
}

Outcome bash(const std::string& script) { return run({"bash", "-c", script}); }

std::vector<std::string> verbs() {
  const Outcome listed = bash(
      R"(source <("$heaptape" completion bash); COMP_WORDS=(heaptape ''); COMP_CWORD=1; _heaptape; echo "${COMPREPLY[@]}")");
  std::vector<std::string> names;
  std::istringstream words(listed.out);
  for (std::string word; words >> word;) {
    if (!word.starts_with("-")) {
      names.push_back(word);
    }
  }
  return names;
}

}  // namespace heaptape::cli::testing
