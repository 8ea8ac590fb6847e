// The flags all examples share, and a reader for them and an example's own.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/stop_request.h"
#include "weft/compile.h"
#include "weft/modules.h"
#include "weft/trainer.h"

namespace weft::examples {

// Sizes and counts that no example has use for are refused before they fill the memory.
inline constexpr IntegerRange kSize = {1, 1'000'000};
inline constexpr IntegerRange kCount = {0, 1'000'000'000};

// Reads `--name value`, `--name=value` and switches. An unknown flag is an error that suggests the nearest one; --help
// prints all. A number outside of its range, or none at all, is an error that names the flag, the value and the range.
class Flags {
 public:
  void text(const std::string& name, std::string* value, const std::string& help);
  // Takes the name of a file, which must not be empty; the value is what it holds.
  void contents(const std::string& name, std::string* value, const std::string& help);
  void integer(const std::string& name, int64_t* value, const std::string& help, IntegerRange range = {});
  // Likewise; nothing where it is not given.
  void integer(const std::string& name, std::optional<int64_t>* value, const std::string& help, IntegerRange range);
  // Likewise, or the word `otherwise`, which stands for `meaning`.
  void integerOr(const std::string& otherwise, int64_t meaning, const std::string& name, std::optional<int64_t>* value,
                 const std::string& help, IntegerRange range);
  void real(const std::string& name, double* value, const std::string& help,
            RealRange range = {.least = 0, .most = std::numeric_limits<float>::max()});
  // Likewise; nothing where it is not given.
  void real(const std::string& name, std::optional<double>* value, const std::string& help,
            RealRange range = {.least = 0, .most = std::numeric_limits<float>::max()});
  // A number of bytes: "40g".
  void bytes(const std::string& name, int64_t* value, const std::string& help);
  // A machine that comes with Weft or a file; the value is the text for CompileOptions::machine.
  void machine(const std::string& name, std::string* value, const std::string& help);
  void mode(const std::string& name, Mode* value, const std::string& help);
  void freedoms(const std::string& name, Freedoms* value, const std::string& help);
  void offload(const std::string& name, Offload* value, const std::string& help);
  // ZeRO levels by pattern of parameter names.
  void zeroOf(const std::string& name, ZeroPatterns* value, const std::string& help);
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

// --mode --devices --mesh --stage-meshes --machine --zero --zero-of --micro --schedule --schedule-file --virtual
// --memory-limit
// --recompute
// --regather --gather-bucket --overlap --offload --departures --without --dump-dir --plan-only
// --steps --init --save --save-nonfinite --seed --threads --trace --check-finite
struct CommonFlags {
  Mode mode = Mode::kSemi;
  int64_t devices = 1;
  std::string mesh;
  std::string stageMeshes;
  std::optional<int64_t> zero;
  ZeroPatterns zeroOf;
  std::optional<int64_t> micro;
  int64_t defaultMicro = 1;  // where mode auto does not find them
  bool regather = false;
  int64_t gatherBucket = 0;
  int64_t departures = 0;
  std::string from;
  Freedoms without;
  bool overlap = false;
  Offload offload = Offload::kNone;
  std::string schedule = "auto";
  std::string scheduleTable;
  std::string machine;
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

  // Those of compiling and of running; the others have no effect on a program that trains nothing.
  void addCompilingTo(Flags& flags);
  void addTo(Flags& flags);
  CompileOptions options() const;
  // Tensor parallelism over mesh axis "tp", data parallelism over "dp" where the mesh has it.
  nn::Parallel parallel(bool sequence) const;
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

// Prints the collectives and memory of a program, and its notes.
void printProgram(const Program& program);
// "first step 4.1234, last step 2.1234"; of no steps, that there was none.
std::string lossesText(const std::vector<double>& losses);
// The main of an example: reads the flags, checks the paths, runs unless --help was asked for, prints an error. Returns
// the exit status: 0; 1 after an error, also where what was printed could not be written; 128 + n where signal n ended
// the training.
int runExample(int argc, char** argv, const CommonFlags& common, Flags& flags,
               const std::function<absl::Status()>& run);

}  // namespace weft::examples
