// The flags all examples share, and a reader for them and an example's own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/stop_request.h"
#include "weft/compile.h"
#include "weft/trainer.h"

namespace weft::examples {

// Reads `--name value`, `--name=value` and switches. An unknown flag is an error that suggests the nearest one; --help
// prints all.
class Flags {
 public:
  void text(const std::string& name, std::string* value, const std::string& help);
  void integer(const std::string& name, int64_t* value, const std::string& help);
  void real(const std::string& name, double* value, const std::string& help);
  void toggle(const std::string& name, bool* value, const std::string& help);

  // Sets the values. `helped` says whether --help was asked for (and printed).
  absl::Status parse(int argc, char** argv, bool* helped);

 private:
  struct Flag {
    std::string help;
    std::string fallback;
    bool isSwitch = false;
    std::function<absl::Status(const std::string&)> set;
  };
  void add(const std::string& name, Flag flag);
  void printHelp(const std::string& program) const;
  absl::Status unknown(const std::string& name) const;

  std::vector<std::string> order_;
  std::map<std::string, Flag> flags_;
};

// --devices --mesh --stage-meshes --zero --micro --schedule --schedule-file --virtual --memory-limit --recompute
// --regather --dump-dir
// --plan-only
// --steps --init --save --save-nonfinite --seed --threads --trace --check-finite
struct CommonFlags {
  int64_t devices = 1;
  std::string mesh;
  std::string stageMeshes;
  int64_t zero = 0;
  int64_t micro = 1;
  bool regather = false;
  std::string schedule = "auto";
  std::string scheduleFile;
  int64_t memoryLimit = 0;
  int64_t virtualStages = 0;
  std::string recompute = "auto";
  std::string dumpDir;
  std::string planOnly;
  int64_t steps = 10;
  std::string init;
  std::string save;
  int64_t seed = 0;
  int64_t threads = 0;
  std::string trace;
  bool saveNonFinite = false;
  bool checkFinite = false;
  // Asked by SIGINT and SIGTERM during training.
  std::shared_ptr<StopRequest> stop = std::make_shared<StopRequest>();

  void addTo(Flags& flags);
  CompileOptions options() const;
  TrainerOptions trainerOptions() const;
  // Can all be written that is to be written?
  absl::Status checkPaths() const;
  // Loads what --init names, runs `body`, and writes what --trace and --save name. SIGINT and SIGTERM end `body` after
  // the step it is in; parameters are saved then, too, and the error (Cancelled) says so. After other errors nothing is
  // saved.
  absl::Status train(Trainer& trainer, const std::function<absl::Status()>& body) const;
  // Writes the plan if --plan-only was given; true then.
  bool wrotePlan(const Program& program, absl::Status* status) const;
};

// Prints the collectives and memory of a program.
void printProgram(const Program& program);
// The main of an example: reads the flags, checks the paths, runs unless --help was asked for, prints an error. Returns
// the exit status: 0; 1 after an error, also where what was printed could not be written; 128 + n where signal n ended
// the training.
int runExample(int argc, char** argv, const CommonFlags& common, Flags& flags,
               const std::function<absl::Status()>& run);

}  // namespace weft::examples
