#include "tools/analysis/fold_layers.h"

#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::tools {
namespace {

// More digits are no layer number, and names with more numbers are not looked at further: a plan may come from
// anywhere.
constexpr size_t kMostDigits = 6;
constexpr size_t kMostNumbers = 4;

bool isDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A number in the name of an operator and what stands before it up to the dot before: "h" and 3 of "grad.h3.fc". Where
// nothing does, the dot and the word before belong to it: "layers." and 3 of "layers.3.fc".
struct LayerNumber {
  std::string prefix;
  int64_t number = 0;
};

// The number whose digits begin at `at`; moves `at` behind them.
std::optional<int64_t> numberAt(const std::string& text, size_t& at) {
  const size_t begin = at;
  while (at < text.size() && isDigit(text[at])) {
    ++at;
  }
  int64_t number = 0;
  const bool read =
      at > begin && at - begin <= kMostDigits && absl::SimpleAtoi(text.substr(begin, at - begin), &number);
  return read ? std::optional<int64_t>(number) : std::nullopt;
}

std::string prefixBefore(const std::string& name, size_t at) {
  size_t begin = at;
  if (begin > 1 && name[begin - 1] == '.') {
    --begin;
  }
  while (begin > 0 && isWord(name[begin - 1]) && !isDigit(name[begin - 1])) {
    --begin;
  }
  return name.substr(begin, at - begin);
}

std::vector<LayerNumber> numbersIn(const std::string& name) {
  std::vector<LayerNumber> found;
  for (size_t at = 0; at < name.size() && found.size() < kMostNumbers; ++at) {
    if (!isDigit(name[at])) {
      continue;
    }
    const std::string prefix = prefixBefore(name, at);
    const std::optional<int64_t> number = numberAt(name, at);
    if (number && !prefix.empty() && prefix != ".") {
      found.push_back({prefix, *number});
    }
  }
  return found;
}

// `text` with each number behind the layer's prefix replaced by `shown(number)`.
template <typename Shown>
std::string replaced(const std::string& text, const std::string& prefix, const Shown& shown) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool here = (at == 0 || !isWord(text[at - 1])) && text.compare(at, prefix.size(), prefix) == 0;
    size_t end = at + prefix.size();
    const std::optional<int64_t> number = here ? numberAt(text, end) : std::nullopt;
    if (number) {
      absl::StrAppend(&out, prefix, shown(*number));
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// What lines of the same fold share.
std::string keyOf(const FoldableLine& line, const std::optional<LayerNumber>& layer) {
  const auto masked = [&](const std::string& text) {
    return !layer ? text : replaced(text, layer->prefix, [&](int64_t number) {
      return absl::StrCat("\x01", number - layer->number, "\x01");
    });
  };
  std::string key = absl::StrCat(layer ? "layer\x02" : "line\x02", masked(line.name));
  for (const std::string& text : line.texts) {
    absl::StrAppend(&key, "\x02", masked(text));
  }
  return absl::StrCat(key, "\x02", line.rest);
}

// "0..h11" to stand behind "h", "0..h3,h7"; behind "layers." "0..11".
std::string ranges(const std::set<int64_t>& numbers, const std::string& prefix) {
  const std::string again = prefix.back() == '.' ? "" : prefix;
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int64_t first = *it;
    int64_t last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) {
      last = *it;
    }
    absl::StrAppend(&text, text.empty() ? "" : "," + again, first);
    absl::StrAppend(&text, last == first ? "" : absl::StrCat("..", again, last));
  }
  return text;
}

struct Choice {
  std::optional<LayerNumber> layer;
  std::string key;
};

std::vector<Choice> choicesOf(const std::vector<FoldableLine>& lines) {
  std::vector<std::vector<Choice>> candidates(lines.size());
  std::map<std::string, size_t> agree;
  for (size_t i = 0; i < lines.size(); ++i) {
    candidates[i].push_back({std::nullopt, keyOf(lines[i], std::nullopt)});
    for (const LayerNumber& layer : numbersIn(lines[i].name)) {
      candidates[i].push_back({layer, keyOf(lines[i], layer)});
    }
    for (const Choice& choice : candidates[i]) {
      ++agree[choice.key];
    }
  }
  std::vector<Choice> chosen;
  for (const std::vector<Choice>& each : candidates) {
    const Choice* best = &each.front();
    for (const Choice& choice : each) {
      best = agree[choice.key] > agree[best->key] ? &choice : best;
    }
    chosen.push_back(*best);
  }
  return chosen;
}

}  // namespace

std::vector<FoldedLine> foldLayers(const std::vector<FoldableLine>& lines) {
  const std::vector<Choice> choices = choicesOf(lines);
  std::map<std::string, size_t> index;
  std::vector<FoldedLine> folded;
  std::vector<std::set<int64_t>> layers;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto [it, isNew] = index.emplace(choices[i].key, folded.size());
    if (isNew) {
      folded.push_back({{}, lines[i].name, lines[i].texts});
      layers.emplace_back();
    }
    folded[it->second].members.push_back(i);
    if (choices[i].layer) {
      layers[it->second].insert(choices[i].layer->number);
    }
  }
  for (size_t f = 0; f < folded.size(); ++f) {
    if (layers[f].size() < 2) {
      continue;
    }
    // The texts of the first member, with its own number taken for every layer's.
    const LayerNumber& own = *choices[folded[f].members.front()].layer;
    const auto shown = [&](int64_t number) {
      std::set<int64_t> numbers;
      for (const int64_t layer : layers[f]) {
        numbers.insert(layer + number - own.number);
      }
      return ranges(numbers, own.prefix);
    };
    folded[f].name = replaced(folded[f].name, own.prefix, shown);
    for (std::string& text : folded[f].texts) {
      text = replaced(text, own.prefix, shown);
    }
  }
  return folded;
}

}  // namespace weft::tools
