const area = element.querySelector(".drop");
const input = area.querySelector("input");
const title = area.querySelector(".name");
const said = area.querySelector(".said");
const limit = Number(area.dataset.limit);
const first = [title.textContent, said.textContent];

const size = (bytes) => (bytes < 1024 ? `${bytes} bytes` : `${Math.ceil(bytes / 1024).toLocaleString("en")} KB`);

function refuse(file, reason) {
	area.content = "";
	area.classList.remove("full");
	area.classList.add("wrong");
	title.textContent = file ? file.name : first[0];
	said.textContent = reason;
}

function take(file) {
	if (!file) return;
	if (file.size > limit) {
		refuse(file, `It has ${size(file.size)}; a file may have ${size(limit)}.`);
		return;
	}
	area.content = "";
	const reader = new FileReader();
	reader.onerror = () => refuse(file, "It cannot be read.");
	reader.onload = () => {
		const code = String(reader.result).split(",", 2)[1] || "";
		area.content = `${file.name.replace(/[\u0000-\u001f\u007f/\\]/g, "_")}\n${code}`;
		area.classList.remove("wrong");
		area.classList.add("full");
		title.textContent = file.name;
		said.textContent = size(file.size);
	};
	reader.readAsDataURL(file);
}

input.addEventListener("change", () => take(input.files[0]));
["dragenter", "dragover"].forEach((name) =>
	area.addEventListener(name, (event) => {
		event.preventDefault();
		area.classList.add("over");
	}),
);
["dragleave", "drop"].forEach((name) => area.addEventListener(name, () => area.classList.remove("over")));
area.addEventListener("drop", (event) => {
	event.preventDefault();
	take(event.dataTransfer.files[0]);
});
