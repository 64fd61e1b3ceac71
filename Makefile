# Shortcuts; CMakePresets.json has the rest.
.PHONY: all demo test format clean install

all:
	cmake --preset release
	cmake --build --preset release -j $$(nproc)

demo:
	scripts/demo.sh

test:
	scripts/test.sh

format:
	git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-14 -i

install: all
	cmake --install build

clean:
	rm -rf build build-*
