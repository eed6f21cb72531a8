;;; contexture-setup.el --- Set up coding agents  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-setup-agent' enters Contexture into the configuration of a
;; coding agent, by `contexture setup'.  It shows the difference first,
;; and changes files only when the user agrees.

;;; Code:

(require 'contexture-doctor)
(require 'diff-mode)
(require 'project)
(eval-when-compile (require 'subr-x))

(declare-function project-root "project" (project))

(defconst contexture-setup-buffer "*contexture: set-up*"
  "Name of the buffer that shows what would change.")

(defconst contexture-setup--names
  '(("Claude Code" . "claude") ("Codex" . "codex")
    ("Gemini CLI" . "gemini") ("OpenCode" . "opencode"))
  "Pairs of the name of an agent, and that on the command line.")

(defconst contexture-setup--here ", only in this project"
  "What follows the name of an agent that is set up for a project.")

(defun contexture-setup--project ()
  "Return the folder of the project of this buffer, or nil."
  (when-let* ((project (project-current)))
    (expand-file-name (project-root project))))

(defun contexture-setup--read (prompt)
  "Ask with PROMPT for an agent.  Return its name and the folder of a project."
  (let* ((names (mapcar #'car contexture-setup--names))
         (project (contexture-setup--project))
         (choice (completing-read
                  prompt
                  (append names
                          (and project
                               (mapcar (lambda (name)
                                         (concat name contexture-setup--here))
                                       names)))
                  nil t))
         (name (string-remove-suffix contexture-setup--here choice)))
    (when (string-empty-p choice)
      (user-error "No agent was chosen"))
    (list (cdr (assoc name contexture-setup--names))
          (unless (equal name choice) project))))

;;;###autoload
(defun contexture-setup-agent (agent &optional project remove)
  "Enter Contexture into the configuration of AGENT, after showing what changes.
AGENT is claude, codex, gemini or opencode.  With PROJECT, a folder, use
the configuration of that project instead of yours.  With a prefix
argument, or if REMOVE is non-nil, take Contexture out again."
  (interactive
   (append (contexture-setup--read
            (if current-prefix-arg "Take Contexture out of: " "Set up agent: "))
           (list current-prefix-arg)))
  (let* ((arguments (append (list "setup" agent)
                            (and project '("--project"))
                            (and remove '("--remove"))))
         (difference (contexture-setup--run project (append arguments '("--dry-run")))))
    (if (not (string-match-p "^[-+]" difference))
        (contexture--message "Contexture: %s" (contexture-setup--brief difference))
      (contexture-setup--show difference)
      (when (y-or-n-p (if remove "Take this out? " "Put this in? "))
        (contexture--message
         "Contexture: %s"
         (contexture-setup--brief (contexture-setup--run project arguments)))))))

(defun contexture-setup--run (folder arguments)
  "Run the program with ARGUMENTS in FOLDER, and return what it printed."
  (let* ((command (or (contexture-doctor--command)
                      (contexture--user-error
                       "The program is not installed; see contexture-doctor")))
         (arguments (append (cdr command) arguments (contexture-doctor--own-arguments)))
         (directory (or folder (expand-file-name "~/"))))
    (with-temp-buffer
      (let* ((default-directory directory)
             (status (apply #'call-process (car command) nil t nil arguments)))
        (unless (eq status 0)
          (contexture--user-error "%s" (string-trim (buffer-string)))))
      (buffer-string))))

(defun contexture-setup--brief (output)
  "Return the lines of OUTPUT that are not part of the difference, as one."
  (string-join (seq-remove (lambda (line) (string-match-p "\\`\\(?:[-+@]\\|\\'\\)" line))
                           (split-string output "\n"))
               "; "))

(defun contexture-setup--show (difference)
  "Show DIFFERENCE, without selecting its window."
  (with-current-buffer (get-buffer-create contexture-setup-buffer)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (contexture--visible difference t))
      (goto-char (point-min)))
    (diff-mode)
    (setq buffer-read-only t)
    (display-buffer (current-buffer))))

(provide 'contexture-setup)
;;; contexture-setup.el ends here
