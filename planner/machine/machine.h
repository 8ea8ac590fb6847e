// What the program runs on, as far as costs need it. Read from a small text file, or the default.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

// Figures are per rank. The default stands for CPU ranks that share one host's memory.
struct Machine {
  std::string name = "default-cpu";
  double flops = 1.0e11;          // f32 multiply-adds x 2, per second
  double memoryBandwidth = 2e10;  // bytes per second
  double linkBandwidth = 1e10;    // bytes per second received by one rank in a collective
  double linkLatency = 2e-6;      // seconds per step of a collective
  double launchLatency = 1e-6;    // seconds before a kernel or a collective begins

  // Text: one `key = value` per line, '#' starts a comment. Errors name the line, the key and the known keys.
  static absl::StatusOr<Machine> parse(const std::string& text);
  std::string print() const;
};

}  // namespace weft
