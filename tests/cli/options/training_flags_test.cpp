// Flags of training steps that make no sense are refused, not ignored.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace autograph {
namespace {

TEST(CliTrainingFlags, NegativeRatesAreRefused) {
  for (const char* verb : {"bench zoo:mlp --train --seconds 0", "compare zoo:mlp --train --seconds 0"}) {
    const ProgramResult result = run_program(std::string(verb) + " --learning-rate=-0.1");
    EXPECT_EQ(result.exit_code, 2) << verb;
    EXPECT_NE(result.err.find("learning-rate: expected a finite number of 0 or more, got -0.1"), std::string::npos)
        << result.err;
  }
}

TEST(CliTrainingFlags, AreNothingWithoutTraining) {
  for (const char* flag : {"--loss mse", "--weights '*bias'", "--optimizer adam", "--learning-rate 0.1"}) {
    const ProgramResult result = run_program(std::string("bench zoo:mlp --seconds 0 ") + flag);
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_NE(result.err.find("expected --train beside it"), std::string::npos) << result.err;
  }
}

// Whoever learned a loss at one verb has it at the others.
TEST(CliTrainingFlags, AllVerbsTakeTheSameLosses) {
  const TestFolder folder;
  const std::vector<std::string> verbs{"check zoo:mlp --gradients --seconds 0",
                                       "grad zoo:mlp -o " + (folder / "g.onnx"), "bench zoo:mlp --train --seconds 0"};
  for (const char* loss :
       {"sum", "sum1", "mean", "cross_entropy", "soft_cross_entropy", "token_cross_entropy", "mse"}) {
    for (const std::string& verb : verbs) {
      const ProgramResult result = run_program(verb + " --loss " + loss);
      EXPECT_EQ(result.exit_code, 0) << verb << " " << loss << ": " << result.err;
    }
    for (const char* verb : {"check", "grad", "bench", "train"}) {
      const std::string help = run_program(std::string(verb) + " --help").out;
      EXPECT_NE(help.find(loss), std::string::npos) << verb << " " << loss;
    }
  }
}

TEST(CliTrainingFlags, NumbersWithoutSenseAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--lr=-1", "learning-rate: expected a finite number of 0 or more, got -1"},
      {"--weight-decay=-1", "weight-decay: expected a finite number of 0 or more, got -1"},
      {"--clip-norm=-1", "clip-norm: expected a finite number of 0 or more, got -1"},
      {"--clip-norm=0", "clip_norm: expected more than 0, got 0"},
      {"--clip-value=-2", "clip-value: expected a finite number of 0 or more, got -2"},
      {"--ema=-0.5", "ema: expected a finite number of 0 or more, got -0.5"},
      {"--ema=1", "average: expected 0 or more and less than 1, got 1"},
      {"--loss-scale=-1", "loss-scale: expected a finite number of 0 or more, got -1"},
      {"--dropout=-1", "dropout: expected a finite number of 0 or more, got -1"},
      {"--accumulate=-1", "accumulate: expected 0 or more, got -1"},
      {"--warm-up=-1", "warm-up: expected 0 or more, got -1"},
      {"--patience=-1", "patience: expected 0 or more, got -1"},
      {"--checkpoint-every=-1", "checkpoint-every: expected 0 or more, got -1"},
      {"--steps=-1", "steps: expected 0 or more, got -1"},
      {"--epochs=-1", "epochs: expected 0 or more, got -1"},
      {"--momentum=-1", "momentum: expected a finite number of 0 or more, got -1"},
      {"--momentum 0.9", "--momentum: expected an optimizer that has one (--optimizer sgd or rmsprop)"},
      {"--nesterov", "--nesterov: expected the optimizer that knows it (--optimizer sgd --momentum R)"},
      {"--optimizer sgd --nesterov", "nesterov: expected a momentum and no dampening, got momentum 0"},
      {"--optimizer sparse_adam --weight-decay 0.1", "lazy: expected neither weight decay nor amsgrad"}};
  const TestFolder folder;
  std::ofstream words(folder / "words.txt");
  for (int i = 0; i < 500; ++i) words << "to be or not to be, that is the question " << i << "\n";
  words.close();
  for (const auto& [flags, message] : cases) {
    const ProgramResult result = run_program("train text --data " + (folder / "words.txt") + " " + flags);
    EXPECT_EQ(result.exit_code, 2) << flags << ": " << result.out;
    EXPECT_NE(result.err.find(message), std::string::npos) << flags << ": " << result.err;
  }
}

}  // namespace
}  // namespace autograph
