;;; contexture-story-tests.el --- A day of a new user  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One story, in which each step is what a new user does: mark in several
;; files, edit without saving, look, ask, save, switch the branch, rename a
;; file, restart Emacs and server, open another project with files of the
;; same names.  The model is an HTTP server in this Emacs.  After each step,
;; what it received is compared with what the buffers or the files have.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-repl-test-helper)
(require 'contexture-preview)
(require 'contexture-symbol)
(require 'contexture-repl)
(require 'contexture-layers)

;;;; The model

(defvar contexture-story-test-asked nil
  "Bodies of the requests that the model received, newest first.")

(defconst contexture-story-test-answer
  "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\
\"content\":\"Understood.\"}}]}\n\n\
data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: [DONE]\n\n"
  "What the model answers.")

(defun contexture-story-test-hear (process text)
  "Collect TEXT from PROCESS, and answer when it is a whole request."
  (let ((heard (concat (process-get process 'heard) text))
        (case-fold-search t))
    (process-put process 'heard heard)
    (when (string-match "\r\n\r\n" heard)
      (let ((body (match-end 0)))
        (when (and (string-match "^content-length: *\\([0-9]+\\)" heard)
                   (>= (- (length heard) body)
                       (string-to-number (match-string 1 heard))))
          (push (decode-coding-string (substring heard body) 'utf-8)
                contexture-story-test-asked)
          (process-send-string
           process (concat "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Connection: close\r\n\r\n"
                           contexture-story-test-answer))
          (process-send-eof process))))))

(defmacro contexture-story-test-with-model (&rest body)
  "Run BODY with a server that keeps its state and asks a model in this Emacs."
  (declare (indent 0) (debug t))
  `(let ((listener (make-network-process
                    :name "model" :server t :host "127.0.0.1" :service t
                    :family 'ipv4 :coding 'binary :noquery t
                    :filter #'contexture-story-test-hear))
         (contexture-story-test-asked nil)
         (process-environment (cons "no_proxy=127.0.0.1" process-environment)))
     (unwind-protect
         (contexture-repl-test--afresh
          (lambda ()
            (let ((contexture-scope 'project)
                  (contexture--told-elsewhere nil)
                  (contexture--layers nil))
              (setq contexture-server-args
                    (append contexture-server-args
                            (list "--config" (contexture-story-test-config listener))))
              ,@body)))
       (delete-process listener))))

(defun contexture-story-test-config (listener)
  "Write a configuration whose model is LISTENER; return the file's name."
  (contexture-ert-write-file
   "config.toml"
   (format "[[providers]]\nname = \"play\"\nkind = \"openai\"\nmodel = \"played\"\n\
url = \"http://127.0.0.1:%d/v1\"\n"
           (process-contact listener :service))))

;;;; Steps

(defun contexture-story-test-git (root &rest args)
  "Run Git with ARGS in ROOT."
  (let ((default-directory root))
    (with-temp-buffer
      (unless (eql 0 (apply #'call-process "git" nil t nil
                            "-c" "user.name=a" "-c" "user.email=a@b"
                            "-c" "init.defaultBranch=main" args))
        (ert-fail (buffer-string))))))

(defun contexture-story-test-project (name)
  "Make a project NAME under Git, with three files; return its root."
  (let ((root (concat contexture-test-directory name "/")))
    (make-directory root)
    (pcase-dolist (`(,file . ,text)
                   `(("area.el" . ,(format "(defun area-of (r)\n  \"Area in %s.\"\n\
  (* pi r r))\n\n(defun other ()\n  'untouched)\n" name))
                     ("notes.txt" . ,(format "first line\nsecond line of %s\nthird line\n"
                                             name))
                     ("units.el" . ,(format "(defvar unit-scale 10\n  \"Scale in %s.\")\n"
                                            name))))
      (with-temp-file (concat root file) (insert text)))
    (contexture-story-test-git root "init" "-q")
    (contexture-story-test-git root "add" ".")
    (contexture-story-test-git root "commit" "-q" "-m" "first")
    root))

(defun contexture-story-test-replace (buffer from to)
  "Replace FROM by TO in BUFFER, as a user types it, without saving."
  (with-current-buffer buffer
    (save-excursion
      (goto-char (point-min))
      (search-forward from)
      (delete-region (match-beginning 0) (match-end 0))
      (insert to))))

(defun contexture-story-test-preview (buffer)
  "Return the text of the preview of BUFFER's context."
  (with-current-buffer buffer
    (save-window-excursion
      (call-interactively #'contexture-preview)
      (contexture-test-settle)
      (with-current-buffer contexture-preview-buffer
        (prog1 (buffer-substring-no-properties (point-min) (point-max))
          (kill-buffer))))))

(defun contexture-story-test-ask (buffer)
  "Ask in the conversation of BUFFER's project; return what the model received."
  (with-current-buffer buffer
    (save-window-excursion
      (setq contexture-story-test-asked nil)
      (contexture-repl (concat "talk about " (file-name-nondirectory
                                              (directory-file-name default-directory))))
      (set-buffer (window-buffer))
      (contexture-test-until contexture-repl--stats)
      (contexture-repl-test-send "What is this?")
      (should (= (length contexture-story-test-asked) 1))
      (mapconcat (lambda (message) (format "%s" (plist-get message :content)))
                 (plist-get (json-parse-string (car contexture-story-test-asked)
                                               :object-type 'plist :array-type 'list)
                            :messages)
                 "\n"))))

(defun contexture-story-test-check (buffer present &optional absent)
  "Check what the preview of BUFFER shows and what the model receives.
Each of the texts PRESENT is there once, and none of ABSENT."
  (dolist (seen (list (contexture-story-test-preview buffer)
                      (contexture-story-test-ask buffer)))
    (dolist (text present)
      (unless (= 1 (cl-count-if #'identity (contexture-story-test-places text seen)))
        (ert-fail (list text :not-once-in seen))))
    (dolist (text absent)
      (when (string-search text seen)
        (ert-fail (list text :still-in seen))))))

(defun contexture-story-test-places (text seen)
  "Return the places of TEXT in SEEN."
  (let ((start 0) places)
    (while (setq start (string-search text seen start))
      (push start places)
      (cl-incf start))
    places))

(ert-deftest contexture-story-of-a-new-user ()
  (skip-unless (executable-find "git"))
  (contexture-story-test-with-model
    (let* ((root (contexture-story-test-project "one"))
           (open (lambda (file) (find-file-noselect (concat root file))))
           (area (funcall open "area.el"))
           (notes (funcall open "notes.txt"))
           (units (funcall open "units.el")))
      ;; Mark a definition, a region of another file and a symbol.
      (with-current-buffer area
        (goto-char (point-min))
        (search-forward "pi r")
        (contexture-test-message "^Added " (contexture-add-defun)))
      (with-current-buffer notes
        (goto-char (point-min))
        (forward-line 1)
        (contexture-test-message "^Added "
          (contexture-add-region (point) (line-beginning-position 2))))
      (with-current-buffer units
        (contexture-test-message "^Added "
          (contexture-add-region (point-min) (point-max))))
      (contexture-story-test-check
       area '("(* pi r r)" "second line of one" "unit-scale 10")
       '("untouched" "first line" "third line"))
      ;; Edit all three, and do not save.
      (contexture-story-test-replace area "(* pi r r)" "(* float-pi r r)")
      (contexture-story-test-replace notes "second line of one" "changed line of one")
      (contexture-story-test-replace notes "first line" "zeroth line\nfirst line")
      (contexture-story-test-replace units "unit-scale 10" "unit-scale 1000")
      (contexture-story-test-check
       notes '("(* float-pi r r)" "changed line of one" "unit-scale 1000")
       '("(* pi r r)" "second line" "unit-scale 10\n" "untouched" "zeroth" "third"))
      ;; Save; another program edits a file; the branch is switched.
      (dolist (buffer (list area notes units))
        (with-current-buffer buffer (save-buffer)))
      (contexture-story-test-git root "commit" "-q" "-a" "-m" "second")
      (contexture-story-test-git root "checkout" "-q" "-b" "work")
      (with-temp-file (concat root "units.el")
        (insert ";; A new head.\n(defvar unit-scale 5\n  \"Scale in one.\")\n"))
      (contexture-story-test-git root "commit" "-q" "-a" "-m" "third")
      (with-current-buffer units (revert-buffer t t))
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 5") '("unit-scale 1000"))
      (contexture-story-test-git root "checkout" "-q" "main")
      (with-current-buffer units (revert-buffer t t))
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 1000") '("unit-scale 5"))
      ;; A file is renamed.
      (kill-buffer notes)
      (contexture-story-test-git root "mv" "notes.txt" "remarks.txt")
      (contexture-story-test-git root "commit" "-q" "-m" "fourth")
      (contexture-story-test-check
       area '("(* float-pi r r)" "changed line of one" "unit-scale 1000" "remarks.txt")
       '("notes.txt"))
      ;; Quit and begin again: other buffers, another server.
      (contexture-disconnect)
      (dolist (buffer (list area units)) (kill-buffer buffer))
      (with-temp-file (concat root "area.el")
        (insert ";; Moved.\n\n(defun area-of (r)\n  \"Area.\"\n  (* 3 r r))\n\n\
(defun other ()\n  'untouched)\n"))
      (setq area (funcall open "area.el"))
      (contexture-story-test-check
       area '("(* 3 r r)" "changed line of one" "unit-scale 1000") '("float-pi" "untouched"))
      ;; Another project has files of the same names.
      (let* ((root (contexture-story-test-project "two"))
             (other (find-file-noselect (concat root "area.el"))))
        (with-current-buffer other
          (goto-char (point-min))
          (search-forward "'untouched")
          (contexture-test-message "^Added " (contexture-add-defun)))
        (contexture-story-test-check
         other '("'untouched") '("area-of" "changed line" "unit-scale"))
        (contexture-story-test-check
         area '("(* 3 r r)" "changed line of one" "unit-scale 1000") '("untouched"))))))

(provide 'contexture-story-tests)
;;; contexture-story-tests.el ends here
