// What the fuzzer and the replay test feed with foreign bytes.
//
// A target is one kind of input: how it is read, and how another input not far from a given one is made. The same
// targets serve two programs: weft-fuzz (libFuzzer, preset `fuzz`) searches for inputs that break one, weft_fuzz_test
// replays the committed corpora with a fixed number of mutations in every build. docs/testing.md says how to run both.
//
// A finding is a crash: a signal, a sanitizer's report, or `require` that did not hold.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/fuzz/mutate.h"

namespace weft::fuzz {

enum class Outcome { kRefused, kAccepted };

struct Target {
  std::string name;  // of its folder in tests/fuzz/corpus, too
  // Reads the bytes and uses what was read as far as a tool would.
  Outcome (*run)(const std::string& bytes) = nullptr;
  // Inputs whose bytes hang together (lengths, checksums, compression) have a mutation of their own; null: text.
  std::string (*mutate)(const std::string& bytes, Mutator& mutator) = nullptr;
  std::vector<std::string> words;  // that mutations of text put in
  int replayed = 1000;             // mutations in the replay test: less where a run is slow
};

// Every target of this build, with those of the compiler where it is built.
const std::vector<Target>& targets();
// Null: none has this name.
const Target* findTarget(const std::string& name);

// An input not far from `bytes`, with a few changes.
std::string mutated(const Target& target, const std::string& bytes, Mutator& mutator);

// Ends the program with `what` if `holds` is false: the input is a finding.
void require(bool holds, const std::string& what);
// The same for an operation that has to succeed.
void requireOk(const absl::Status& status, const std::string& what);

// "a|b c|d" as three words.
std::vector<std::string> wordsOf(const std::string& text);

Outcome outcomeOf(const absl::Status& status);

// One per file of targets.
Target planTarget();
Target decisionsTarget();
Target safetensorsTarget();
Target idxTarget();
Target textTarget();
Target bpeTarget();
Target scheduleTarget();
Target lifetimesTarget();
Target traceTarget();
Target flagsTarget();
Target layoutsTarget();
Target graphTarget();
Target strategyGraphTarget();
// With the compiler:
Target irTarget();
Target exampleFlagsTarget();

}  // namespace weft::fuzz
