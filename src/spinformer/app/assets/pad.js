const SIDE = 28;
const board = element.querySelector("canvas.drawing");
const pen = board.getContext("2d");
const pixels = new Uint8ClampedArray(SIDE * SIDE);
const cursor = { x: 14, y: 14 };

const decoded = (code) => Array.from({ length: SIDE * SIDE }, (_, k) => parseInt(code.slice(2 * k, 2 * k + 2), 16));

function paint(canvas, values) {
	const tool = canvas.getContext("2d");
	const size = canvas.width / SIDE;
	values.forEach((value, k) => {
		tool.fillStyle = `rgb(${value}, ${value}, ${value})`;
		tool.fillRect((k % SIDE) * size, Math.floor(k / SIDE) * size, size, size);
	});
}

function show() {
	paint(board, pixels);
	board.dataset.code = Array.from(pixels, (value) => value.toString(16).padStart(2, "0")).join("");
	if (document.activeElement === board) {
		pen.strokeStyle = "#56b4e9";
		pen.lineWidth = 2;
		pen.strokeRect(cursor.x * 10 + 1, cursor.y * 10 + 1, 8, 8);
	}
}

function ink(x, y) {
	for (let row = Math.floor(y) - 1; row <= Math.floor(y) + 1; row++) {
		for (let column = Math.floor(x) - 1; column <= Math.floor(x) + 1; column++) {
			if (row < 0 || column < 0 || row >= SIDE || column >= SIDE) continue;
			const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y);
			const value = 255 * Math.max(0, Math.min(1, 1.7 - distance));
			pixels[row * SIDE + column] = Math.max(pixels[row * SIDE + column], value);
		}
	}
}

let previous = null;
function stroke(event) {
	const box = board.getBoundingClientRect();
	const point = { x: ((event.clientX - box.left) / box.width) * SIDE, y: ((event.clientY - box.top) / box.height) * SIDE };
	const from = previous || point;
	const count = Math.max(1, Math.ceil(2 * Math.hypot(point.x - from.x, point.y - from.y)));
	for (let k = 1; k <= count; k++) ink(from.x + ((point.x - from.x) * k) / count, from.y + ((point.y - from.y) * k) / count);
	previous = point;
	show();
}

board.addEventListener("pointerdown", (event) => {
	board.setPointerCapture(event.pointerId);
	previous = null;
	stroke(event);
});
board.addEventListener("pointermove", (event) => board.hasPointerCapture(event.pointerId) && stroke(event));
board.addEventListener("focus", show);
board.addEventListener("blur", show);
board.addEventListener("keydown", (event) => {
	const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
	const move = moves[event.key];
	if (move) {
		cursor.x = Math.max(0, Math.min(SIDE - 1, cursor.x + move[0]));
		cursor.y = Math.max(0, Math.min(SIDE - 1, cursor.y + move[1]));
	} else if (event.key === " ") {
		ink(cursor.x + 0.5, cursor.y + 0.5);
	} else if (event.key === "Backspace") {
		pixels[cursor.y * SIDE + cursor.x] = 0;
	} else {
		return;
	}
	event.preventDefault();
	show();
});

const choices = element.querySelectorAll(".choices button");
function choose(button) {
	pixels.set(decoded(button.dataset.code));
	choices.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
	show();
}
choices.forEach((button) => {
	paint(button.querySelector("canvas"), decoded(button.dataset.code));
	button.addEventListener("click", () => choose(button));
});
element.querySelector(".clear").addEventListener("click", () => {
	pixels.fill(0);
	choices.forEach((other) => other.setAttribute("aria-pressed", "false"));
	show();
});
choose(choices[3]);
