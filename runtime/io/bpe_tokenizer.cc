#include "runtime/io/bpe_tokenizer.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/json.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "runtime/base/utf8.h"

namespace weft {
namespace {

constexpr int32_t kNoRank = -1;

// The code point that stands for each byte in the files.
std::array<uint32_t, 256> charactersOfBytes() {
  std::array<uint32_t, 256> characters;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    characters[byte] = itself ? byte : next++;
  }
  return characters;
}

// A token's name as an error shows it, in the spelling of encoder.json.
std::string shownName(std::string_view name) {
  return shownJson(Json(std::string(name)));
}

// Error: a character of the name, which is UTF-8, that stands for no byte.
absl::StatusOr<std::string> bytesOfName(const std::string& name,
                                        const std::unordered_map<uint32_t, char>& bytesOfCharacters) {
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    uint32_t character = 0;
    at += codePointAt(name, at, &character);
    const auto found = bytesOfCharacters.find(character);
    if (found == bytesOfCharacters.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: U+%04X stands for no byte; those that do are below U+0144", shownName(name), character));
    }
    bytes.push_back(found->second);
  }
  return bytes;
}

uint64_t pairOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

enum class CharacterKind { kLetter, kNumber, kSpace, kOther, kEnd };

struct Character {
  CharacterKind kind = CharacterKind::kEnd;
  size_t bytes = 0;
};

Character characterAt(std::string_view text, size_t at) {
  if (at == text.size()) {
    return {};
  }
  uint32_t codePoint = 0;
  const size_t bytes = codePointAt(text, at, &codePoint);
  if (bytes == 0) {
    return {CharacterKind::kOther, 1};
  }
  const UChar32 character = static_cast<UChar32>(codePoint);
  const uint32_t category = U_GET_GC_MASK(character);
  return {(category & U_GC_L_MASK) != 0     ? CharacterKind::kLetter
          : (category & U_GC_N_MASK) != 0   ? CharacterKind::kNumber
          : u_isUWhiteSpace(character) != 0 ? CharacterKind::kSpace
                                            : CharacterKind::kOther,
          bytes};
}

}  // namespace

size_t endOfWord(std::string_view text, size_t at) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.compare(at, ending.size(), ending) == 0) {
      return at + ending.size();
    }
  }
  // ` ?` and a run of one kind.
  size_t end = text[at] == ' ' ? at + 1 : at;
  const CharacterKind kind = characterAt(text, end).kind;
  if (kind != CharacterKind::kSpace && kind != CharacterKind::kEnd) {
    for (Character next = characterAt(text, end); next.kind == kind; next = characterAt(text, end)) {
      end += next.bytes;
    }
    return end;
  }
  // White space: before a word its last character is left to the next match, unless it is the only one.
  size_t last = at;
  end = at;
  for (Character next = characterAt(text, end); next.kind == CharacterKind::kSpace; next = characterAt(text, end)) {
    last = end;
    end += next.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

absl::StatusOr<BpeTokenizer> BpeTokenizer::open(const std::string& folder) {
  File encoder = {absl::StrCat(folder, "/encoder.json"), ""};
  File merges = {absl::StrCat(folder, "/vocab.bpe"), ""};
  WEFT_ASSIGN_OR_RETURN(encoder.text, readText(encoder.path));
  WEFT_ASSIGN_OR_RETURN(merges.text, readText(merges.path));
  return fromTexts(encoder, merges);
}

absl::StatusOr<BpeTokenizer> BpeTokenizer::fromTexts(const File& encoder, const File& merges) {
  BpeTokenizer tokenizer;
  WEFT_ASSIGN_OR_RETURN(const IdsOfNames ids, tokenizer.readTokens(encoder));
  WEFT_RETURN_IF_ERROR(tokenizer.readMerges(merges, encoder, ids));
  return tokenizer;
}

absl::StatusOr<BpeTokenizer::IdsOfNames> BpeTokenizer::readTokens(const File& encoder) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(encoder.path, ": ", what...));
  };
  const auto entries = parseJsonIntegers(encoder.text);
  if (!entries.ok()) {
    return error(entries.status().message());
  }
  const std::array<uint32_t, 256> characters = charactersOfBytes();
  std::unordered_map<uint32_t, char> bytesOfCharacters;
  for (int byte = 0; byte < 256; ++byte) {
    bytesOfCharacters[characters[byte]] = static_cast<char>(byte);
  }
  const int64_t count = static_cast<int64_t>(entries->size());
  std::vector<const std::string*> names(count);
  IdsOfNames ids;
  tokens_.resize(count);
  for (const auto& [name, id] : *entries) {
    if (id >= count) {
      return error(shownName(name), " has id ", id, "; the ids of ", count, " tokens are 0 to ", count - 1);
    }
    if (names[id] != nullptr) {
      return error(shownName(*names[id]), " and ", shownName(name), " both have id ", id);
    }
    absl::StatusOr<std::string> bytes = bytesOfName(name, bytesOfCharacters);
    if (!bytes.ok()) {
      return error(bytes.status().message());
    }
    names[id] = &name;
    tokens_[id] = *std::move(bytes);
    ids[name] = static_cast<int32_t>(id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    appendUtf8(characters[byte], &name);
    const auto found = ids.find(name);
    if (found == ids.end()) {
      return error("byte ", byte, " has no token; ", shownName(name), " should be there");
    }
    byteTokens_[byte] = found->second;
  }
  return ids;
}

absl::Status BpeTokenizer::readMerges(const File& merges, const File& encoder, const IdsOfNames& ids) {
  const std::string_view text = merges.text;
  int64_t line = 0;
  std::vector<int64_t> linesOfRanks;
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(merges.path, ":", line, ": ", what...));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view pair = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (line == 1 && pair.substr(0, 9) == "#version:") {
      continue;
    }
    const size_t space = pair.find(' ');
    const bool one = space != pair.npos && pair.find(' ', space + 1) == pair.npos;
    if (!one || space == 0 || space + 1 == pair.size()) {
      return error(shownName(pair), " is no pair of tokens: expected two, with one space between them");
    }
    const std::string parts[] = {std::string(pair.substr(0, space)), std::string(pair.substr(space + 1))};
    int32_t found[3];
    for (int i = 0; i < 3; ++i) {
      const std::string name = i < 2 ? parts[i] : parts[0] + parts[1];
      const auto id = ids.find(name);
      if (id == ids.end()) {
        return error(shownName(name), i < 2 ? "" : absl::StrCat(", the whole of ", shownName(pair), ","),
                     " has no id in ", encoder.path);
      }
      found[i] = id->second;
    }
    const auto [before, fresh] = ranks_.try_emplace(pairOf(found[0], found[1]), static_cast<int32_t>(joined_.size()));
    if (!fresh) {
      return error(shownName(pair), " stands in line ", linesOfRanks[before->second], ", too");
    }
    joined_.push_back(found[2]);
    linesOfRanks.push_back(line);
  }
  return absl::OkStatus();
}

int32_t BpeTokenizer::rankOf(int32_t left, int32_t right) const {
  const auto found = ranks_.find(pairOf(left, right));
  return found == ranks_.end() ? kNoRank : found->second;
}

// Takes n log n steps for n bytes: a word may be as long as the text.
std::vector<int32_t> BpeTokenizer::mergeWord(std::string_view word) const {
  struct Symbol {
    int32_t token;
    int32_t rank;  // of the pair with the next one; kNoRank also where it was joined to the one before
    size_t before;
    size_t next;
  };
  struct Merge {
    int32_t rank;
    size_t left;
    bool operator>(const Merge& other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
  };
  std::vector<Symbol> symbols(word.size());
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> merges;
  const auto rankAgain = [&](size_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next == word.size() ? kNoRank : rankOf(symbol.token, symbols[symbol.next].token);
    if (symbol.rank != kNoRank) {
      merges.push({symbol.rank, at});
    }
  };
  for (size_t at = 0; at < word.size(); ++at) {
    symbols[at] = {byteTokens_[static_cast<uint8_t>(word[at])], kNoRank, at - 1, at + 1};
  }
  for (size_t at = 0; at < word.size(); ++at) {
    rankAgain(at);
  }
  while (!merges.empty()) {
    const Merge merge = merges.top();
    merges.pop();
    Symbol& left = symbols[merge.left];
    if (left.rank != merge.rank) {
      continue;  // a neighbour has changed since
    }
    left.token = joined_[merge.rank];
    symbols[left.next].rank = kNoRank;
    left.next = symbols[left.next].next;
    if (left.next != word.size()) {
      symbols[left.next].before = merge.left;
    }
    rankAgain(merge.left);
    if (merge.left != 0) {
      rankAgain(left.before);
    }
  }
  std::vector<int32_t> ids;
  for (size_t at = 0; at < word.size(); at = symbols[at].next) {
    ids.push_back(symbols[at].token);
  }
  return ids;
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  std::unordered_map<std::string_view, std::vector<int32_t>> idsOfWords;
  for (size_t at = 0; at < text.size();) {
    const size_t end = endOfWord(text, at);
    const auto [word, fresh] = idsOfWords.try_emplace(text.substr(at, end - at));
    if (fresh) {
      word->second = mergeWord(word->first);
    }
    ids.insert(ids.end(), word->second.begin(), word->second.end());
    at = end;
  }
  return ids;
}

absl::StatusOr<std::string> BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string bytes;
  for (size_t place = 0; place < ids.size(); ++place) {
    if (ids[place] < 0 || ids[place] >= vocabularySize()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", ids[place], " at place ", place, "; the vocabulary has ids 0 to ", vocabularySize() - 1));
    }
    bytes += bytesOf(ids[place]);
  }
  return bytes;
}

}  // namespace weft
