;;; bench-tools.el --- Time the tools by which models read in Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' for the tools that read: how long a model waits
;; for an answer, for how long a call blocks Emacs, and what 1,001 calls
;; leave behind.  The model is one of the server's that follow a script;
;; its calls go through the server, one after the other.  The time of an
;; answer is that from one call's arrival in Emacs to the next one's, so it
;; has the way to the server and back.
;;
;; Prints rows as from-emacs.el does.  CONTEXTURE_BIN names the server.
;; By itself: emacs -Q --batch -L elisp -L benches/emacs -l bench-tools
;; -f bench-tools-run, with everything byte-compiled.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'from-emacs)
(require 'contexture)
(require 'contexture-tools)

(defconst bench-tools-calls
  '(("list_buffers" . "{}")
    ("read_buffer" . "{\"file\": \"contexture.el\"}")
    ("find_definitions" . "{\"symbol\": \"car\", \"file\": \"contexture.el\"}")
    ("list_definitions" . "{\"file\": \"contexture.el\"}")
    ("find_documentation" . "{\"symbol\": \"car\", \"file\": \"contexture.el\"}")
    ("describe_elisp" . "{\"name\": \"mapcar\"}")
    ("list_diagnostics" . "{}")
    ("compilation_output" . "{}")
    ("list_files" . "{\"pattern\": \"*.el\"}")
    ("search_project" . "{\"regexp\": \"contexture-add-r\"}")
    ("list_commands" . "{}"))
  "Calls of tools, each (NAME . ARGUMENTS), that the model makes in turn.")

(defconst bench-tools-rounds 91 "How many times the model makes all of these calls.")

(defvar bench-tools-log nil
  "What happened, the last first: (called NAME TIME) and (ran NAME SECONDS).")

(defun bench-tools-called (params)
  "Note that a call with PARAMS, from the server, arrived."
  (push (list 'called (plist-get params :tool) (float-time)) bench-tools-log))

(defun bench-tools-timed (function call)
  "Call FUNCTION with CALL, and note for how long that blocks Emacs."
  (let ((start (float-time)))
    (prog1 (funcall function call)
      (push (list 'ran (contexture-tools--tool-name (contexture-tools--call-tool call))
                  (- (float-time) start))
            bench-tools-log))))

(defun bench-tools-project (folder)
  "Make FOLDER a project of the package's files, which are visited.
It has a compilation, too."
  (call-process "git" nil nil nil "init" "-q" folder)
  (dolist (file (directory-files (file-name-directory (locate-library "contexture"))
                                 t "\\`contexture.*\\.el\\'"))
    (copy-file file folder)
    (find-file-noselect (concat folder (file-name-nondirectory file))))
  (with-current-buffer (get-buffer-create "*compilation*")
    (setq default-directory folder)
    (dotimes (number 2000)
      (insert (format "contexture.el:%d: something is wrong here\n" number)))
    (compilation-mode)))

(defun bench-tools-script (file)
  "Write to FILE what the model says."
  (with-temp-file file
    (insert "[[answer]]\ncalls = [\n")
    (pcase-dolist (`(,name . ,arguments) bench-tools-calls)
      (insert (format "{ name = \"%s\", arguments = '%s' },\n" name arguments)))
    (insert "]\n\n[[answer]]\ntext = \"Done.\"\n")))

(defun bench-tools-turn ()
  "Ask the model once; return the seconds that it waited for each answer."
  (setq bench-tools-log nil)
  (garbage-collect)                     ; that is no tool's time
  (let (answer)
    (contexture-request-async 'chat '(:content "x")
                              :success (lambda (result) (setq answer result))
                              :error (lambda (problem) (error "%S" problem)))
    (with-timeout (30 (error "The model does not answer"))
      ;; Without a screen, Emacs runs a timer that a timer sets only when it waits anew.
      (while (not answer) (accept-process-output nil 0.001)))
    (dolist (call (plist-get answer :tool-calls))
      (unless (eq (plist-get call :outcome) :done)
        (error "A call failed: %S" call)))
    (let ((called (cl-remove 'called (reverse bench-tools-log)
                             :key #'car :test-not #'eq)))
      (cl-loop for ((_ _ start) (_ _ end)) on called
               while end collect (- end start)))))

(defun bench-tools-things ()
  "Return the numbers of buffers, processes and timers."
  (list (length (buffer-list)) (length (process-list))
        (+ (length timer-list) (length timer-idle-list))))

(defun bench-tools-run ()
  "Run all and print the rows."
  (let* ((folder (file-name-as-directory (make-temp-file "bench-tools" t)))
         (script (concat folder "script.toml"))
         (contexture-server-command (list (getenv "CONTEXTURE_BIN")))
         (contexture-server-args '("--ephemeral"))
         (contexture-tools '((t t)))
         (contexture-providers `(("play" :kind scripted :model "x" :default t
                                  :script ,script)))
         (inhibit-message t))
    (unwind-protect
        (progn
          (bench-tools-project folder)
          (bench-tools-script script)
          (advice-add 'contexture-tools--called :before #'bench-tools-called)
          (advice-add 'contexture-tools--run :around #'bench-tools-timed)
          (contexture-request 'open-session (list :name "tools" :project folder))
          (bench-tools-turn)
          (bench-tools-measure))
      (contexture-disconnect)
      (delete-directory folder t))))

(defun bench-tools-measure ()
  "Print the rows."
  (garbage-collect)
  (let* ((before (bench-tools-things))
         blocks
         (waits (sort (cl-loop repeat bench-tools-rounds
                               append (bench-tools-turn)
                               do (setq blocks (append (cl-remove 'ran bench-tools-log
                                                                  :key #'car :test-not #'eq)
                                                       blocks)))
                      #'<))
         (longest (car (sort blocks (lambda (one other) (> (nth 2 one) (nth 2 other))))))
         (after (progn (accept-process-output nil 0.3) (bench-tools-things)))
         (left (cl-reduce #'+ (cl-mapcar (lambda (now then) (max 0 (- now then))) after before))))
    (bench-row-limit "answer of a tool that reads in Emacs, median"
                     (* 1e3 (bench-quantile waits 0.5)) 15)
    (bench-row-limit "answer of a tool that reads in Emacs, 99th percentile"
                     (* 1e3 (bench-quantile waits 0.99)) 15)
    (bench-row-limit (format "longest block of Emacs by one of 1,001 calls (%s)" (nth 1 longest))
                     (* 1e3 (nth 2 longest)) 20)
    (bench-row "buffers, processes and timers left by 1,001 calls" (format "%d" left) "0"
               "-" "0" (bench-verdict (zerop left)))))

(provide 'bench-tools)
;;; bench-tools.el ends here
