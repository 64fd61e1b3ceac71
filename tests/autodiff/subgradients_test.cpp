// The table of docs/user/subgradients.md, row by row.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/reduction.h"

namespace autograph {
namespace {

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) numbers.push_back(std::stod(word));
  return numbers;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

struct Row {
  std::string op;
  std::vector<std::vector<double>> inputs, gradients;
  Attributes attributes;
};

std::vector<std::vector<double>> tensors_of(const std::string& cell) {
  std::vector<std::vector<double>> tensors;
  for (const std::string& part : split_at(cell, ',')) tensors.push_back(numbers_of(part));
  return tensors;
}

std::vector<Row> rows_of_table() {
  std::ifstream file(AG_DOCS_FOLDER "/user/subgradients.md");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = split_at(line, '|');
    if (cells.size() != 5 || trimmed(cells[1]) == "op" || cells[1].starts_with("---")) continue;
    Row row{trimmed(cells[1]), tensors_of(cells[2]), tensors_of(cells[4]), {}};
    if (const std::string pair = trimmed(cells[3]); !pair.empty()) {
      row.attributes.set(split_at(pair, '=')[0], std::stof(split_at(pair, '=')[1]));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Tensor tensor_of(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? Tensor::scalar(numbers[0])
                             : Tensor::of<double>({static_cast<int64_t>(numbers.size())}, numbers);
}

std::vector<Tensor> gradients_of(const Row& row) {
  GraphBuilder graph;
  std::vector<Var> inputs;
  std::vector<Datum> values;
  for (const std::vector<double>& numbers : row.inputs) {
    const Tensor value = tensor_of(numbers);
    values.emplace_back(value);
    inputs.push_back(graph.input("x" + std::to_string(inputs.size()), DType::f64, value.type().shape()));
  }
  const Var y = apply(*find_op(row.op), inputs, row.attributes);
  inputs.resize(row.gradients.size());
  for (const Var& gradient : grad(reduce_sum(y, {}, false), inputs)) {
    graph.output("gradient" + std::to_string(gradient.id().index), gradient);
  }
  std::vector<Tensor> gradients;
  for (const Datum& output : compile(graph.build()).run(values)) gradients.push_back(output.tensor());
  return gradients;
}

TEST(Subgradients, AreThoseOfTheTable) {
  const std::vector<Row> rows = rows_of_table();
  ASSERT_GT(rows.size(), 20U);
  for (const Row& row : rows) {
    ASSERT_NE(find_op(row.op), nullptr) << row.op;
    const std::vector<Tensor> actual = gradients_of(row);
    for (size_t k = 0; k < row.gradients.size(); ++k) {
      const std::vector<double> values = actual[k].to_f64();
      ASSERT_EQ(values.size(), row.gradients[k].size()) << row.op;
      for (size_t i = 0; i < values.size(); ++i) {
        const double expected = row.gradients[k][i];
        const bool agrees = values[i] == expected || std::abs(values[i] - expected) < 1e-6;
        EXPECT_TRUE(agrees) << row.op << ", input " << k << ", element " << i << ": " << values[i] << ", expected "
                            << expected;
      }
    }
  }
}

}  // namespace
}  // namespace autograph
