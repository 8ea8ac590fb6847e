// `weft`: one program, many commands. A command is a row of the table below and a file in commands/.
#include <iostream>
#include <string>
#include <vector>

#include "runtime/base/names.h"
#include "tools/commands/advise.h"
#include "tools/commands/compile.h"
#include "tools/commands/explain_code.h"
#include "tools/commands/flags.h"
#include "tools/commands/layout.h"
#include "tools/commands/machine.h"
#include "tools/commands/memory.h"
#include "tools/commands/operators.h"
#include "tools/commands/plan.h"
#include "tools/commands/print.h"
#include "tools/commands/reshard.h"
#include "tools/commands/schedule.h"
#include "tools/commands/stats.h"
#include "tools/commands/strategy.h"
#include "tools/commands/view/view.h"

namespace {

struct Command {
  std::string name;
  std::string help;
  int (*run)(int argc, char** argv);  // argv[0] is the command's name
};

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"advise", "what would lower the memory of a model's program, and at what price", weft::tools::adviseCommand},
      {"compile", "a model's IR to a plan file", weft::tools::compileCommand},
      {"explain", "every collective of a plan: why it is there, its price, the source line",
       weft::tools::explainWithCodeCommand},
      {"layout", "what every rank holds of a tensor under a layout", weft::tools::layoutCommand},
      {"machine", "the figures that costs come from; or measures this host", weft::tools::machineCommand},
      {"memory", "packs a table of lifetimes, or shows what fills the memory of a plan", weft::tools::memoryCommand},
      {"operators", "every operator: its factor rule, linear sets, expansion, gradient", weft::tools::operatorsCommand},
      {"plan", "searches a plan for a model, without compiling it", weft::tools::planCommand},
      {"print",
       "a module of any state, as of --dump-dir, as a table: names, shapes, layouts, who decided, source lines",
       weft::tools::printCommand},
      {"reshard", "the cheapest collectives from one layout to another", weft::tools::reshardCommand},
      {"schedule", "a pipeline schedule, generated or from a file, checked and simulated",
       weft::tools::scheduleCommand},
      {"stats", "collectives, arithmetic and memory of a plan", weft::tools::statsCommand},
      {"strategy", "what a shard strategy means for one operator", weft::tools::strategyCommand},
      {"view", "a page that shows a plan: operators, timeline, memory, times; beside a recorded run",
       weft::tools::viewCommand},
  };
  return table;
}

void printHelp(std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : commands()) {
    rows.push_back({"  " + command.name, command.help});
  }
  out << "weft COMMAND [flags]\n" << weft::tools::table(rows) << "'weft COMMAND --help' lists the flags.\n";
}

int unknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.push_back(command.name);
  }
  std::string near = weft::similarName(name, names);
  std::cerr << "weft: unknown command '" << name << "'" << (near.empty() ? "" : "; did you mean '" + near + "'?")
            << "\n";
  printHelp(std::cerr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "";
  if (name.empty()) {
    printHelp(std::cerr);
    return 2;
  }
  if (name == "help" || name == "--help") {
    printHelp(std::cout);
    return weft::tools::finishOutput(name, 0);
  }
  for (const Command& command : commands()) {
    if (command.name == name) {
      return weft::tools::finishOutput(name, command.run(argc - 1, argv + 1));
    }
  }
  return unknownCommand(name);
}
