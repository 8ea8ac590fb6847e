// libFuzzer's side of a target: weft-fuzz --target=plan build/fuzz/corpus/plan tests/fuzz/corpus/plan
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

// MLIR's library is not instrumented but poisons memory of its own: ASan must not take such a mark for an error.
extern "C" const char* __asan_default_options() {
  return "allow_user_poisoning=0";
}

namespace {

constexpr char kFlag[] = "--target=";
// More than this is not put into a mutation beyond what the input has.
constexpr size_t kRoom = 256;

const weft::fuzz::Target* chosen = nullptr;

std::string mutateRaw(const std::string& bytes, weft::fuzz::Mutator&) {
  std::string buffer = bytes;
  buffer.resize(bytes.size() + kRoom);
  buffer.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(buffer.data()), bytes.size(), buffer.size()));
  return buffer;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp((*argv)[i], kFlag, std::strlen(kFlag)) == 0) {
      chosen = weft::fuzz::findTarget((*argv)[i] + std::strlen(kFlag));
    }
  }
  if (chosen == nullptr) {
    std::fprintf(stderr, "say what to fuzz: %sNAME, one of", kFlag);
    for (const weft::fuzz::Target& target : weft::fuzz::targets()) {
      std::fprintf(stderr, " %s", target.name.c_str());
    }
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  weft::fuzz::Mutator mutator(seed, mutateRaw);
  const std::string changed =
      weft::fuzz::mutated(*chosen, std::string(reinterpret_cast<const char*>(data), size), mutator);
  if (changed.size() > most) {
    return LLVMFuzzerMutate(data, size, most);
  }
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}
