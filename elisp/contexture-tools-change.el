;;; contexture-tools-change.el --- Changes and runs that models ask for  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model can propose a change of a file of the project: it is shown at
;; its place, as `contexture-rewrite' shows one, and the model is told what
;; the user decided.  And it can run the project's commands, to compile and
;; to test; failures become items of the context.
;;
;; What runs is what the user was asked about: the argument of the call is
;; the whole command line.

;;; Code:

(require 'ansi-color)
(require 'contexture-code)
(require 'contexture-tools-emacs)
(eval-when-compile (require 'subr-x))

(declare-function compilation--ensure-parse "compile" (limit))
(declare-function compilation-start "compile" t t)
(declare-function contexture--with-layers "contexture" (function &optional failure))
(declare-function contexture-current-manager "contexture" ())
(declare-function contexture-sources--error-metadata "contexture-sources" ())
(declare-function contexture-sources--error-params "contexture-sources"
                  (position &optional metadata))
(declare-function contexture-sources--error-place "contexture-sources" (position))
(declare-function contexture-sources--message-here "contexture-sources" ())
(defvar compilation-disable-input)
(defvar compilation-exit-message-function)
(defvar compilation-filter-hook)
(defvar compilation-finish-functions)
(defvar compile-command)

;;;; Which buffer may be changed

(defconst contexture-tools-change--longest 200000
  "Maximum number of characters of a text that a model proposes.")

(defun contexture-tools-change--buffer (file)
  "Return the buffer of FILE, which may be new, or signal an error.
FILE may also be the name of a buffer."
  (let* ((name (contexture-tools-change--file file))
         (buffer (or (find-buffer-visiting name)
                     (contexture-tools-change--open file name))))
    (with-current-buffer buffer
      (when buffer-read-only
        (error "%s is read-only in Emacs" file))
      (unless (verify-visited-file-modtime)
        (error "%s changed on disk after Emacs read it; the user has to revert its buffer" file)))
    buffer))

(defun contexture-tools-change--file (file)
  "Return the true name of FILE, which a model may change, or signal an error."
  (let* ((true (file-truename (contexture-tools-change--named file)))
         (inside (file-relative-name true (file-truename contexture-tool-project))))
    (cond ((or (string-prefix-p "../" inside) (file-name-absolute-p inside))
           (error "%s is outside of the project" file))
          ((cl-intersection (split-string inside "/") vc-directory-exclusion-list
                            :test #'equal)
           (error "%s belongs to version control" file))
          ((string-match-p epa-file-name-regexp true)
           (error "%s is encrypted" file)))
    true))

(defun contexture-tools-change--named (file)
  "Return the full name of FILE, or else the file of the buffer with that name."
  (let* ((name (contexture-tools-emacs--path file))
         (buffer (and (not (file-exists-p name)) (get-buffer file))))
    (cond ((null buffer) name)
          ((buffer-base-buffer buffer)
           (error "%s shows a part of %s; propose the change there"
                  file (buffer-name (buffer-base-buffer buffer))))
          ((null (buffer-file-name buffer)) (error "%s visits no file" file))
          (t (contexture-tools-emacs--path (buffer-file-name buffer))))))

(defun contexture-tools-change--open (file name)
  "Visit FILE, whose true name is NAME, without a question.
Local variables that are not safe do not count."
  (let ((size (file-attribute-size (or (file-attributes name)
                                       '(nil nil nil nil nil nil nil 0)))))
    (cond ((and (file-exists-p name) (not (file-regular-p name)))
           (error "%s is no file" file))
          ((not (file-directory-p (file-name-directory name)))
           (error "The folder of %s does not exist" file))
          ((> size (or large-file-warning-threshold most-positive-fixnum))
           (error "%s is too large: it has %d bytes" file size))))
  (let ((enable-local-variables :safe) (enable-local-eval nil) (inhibit-interaction t))
    (find-file-noselect name t)))

;;;; Proposing a change

(defun contexture-tools-change--propose (done file new old definition)
  "Propose NEW in place of OLD in FILE; call DONE with what the user decides.
With DEFINITION, a name, NEW is proposed in place of that definition.
Return a function that withdraws the proposal."
  (when (> (length new) contexture-tools-change--longest)
    (error "The new text is too long: at most %d characters" contexture-tools-change--longest))
  (let* ((project contexture-tool-project)
         (known (buffer-list))
         (buffer (contexture-tools-change--buffer file)))
    (condition-case problem
        (with-current-buffer buffer
          (pcase-let* ((`(,beg . ,end) (contexture-tools-change--place file old definition))
                       (text (contexture-tools-change--text beg end)))
            (when definition
              (setq new (concat (string-trim-right new "\n+")
                                (and (string-suffix-p "\n" text) "\n"))))
            (when (equal text new)
              (error "%s already has that text" file))
            (contexture-tools-change--review done file beg end new project)))
      (error (unless (memq buffer known) (kill-buffer buffer))
             (signal (car problem) (cdr problem))))))

(defun contexture-tools-change--place (file old definition)
  "Return the bounds of OLD, or else of DEFINITION, in the buffer of FILE."
  (contexture-tools-emacs--in (current-buffer)
    (let* ((wordedp (not (member old '(nil ""))))
           (found (cond ((and definition (not wordedp)) (contexture-defun--named definition))
                        (wordedp (contexture-tools-change--matches old))
                        ((= (point-min) (point-max)) (list (cons (point-min) (point-max))))
                        (t (error "Say which text of %s to replace" file))))
           (what (if wordedp "The old text" (format "The definition of %s" definition))))
      (cond ((null found)
             (error "%s is not in %s as it is now; read_buffer shows it" what file))
            ((cdr found)
             (error "%s is in %s more than once; give more of the lines around it as the old text"
                    what file)))
      (cons (copy-marker (caar found)) (copy-marker (cdar found) t)))))

(defun contexture-tools-change--matches (text)
  "Return the bounds of at most two places of TEXT in this buffer."
  (goto-char (point-min))
  (let ((case-fold-search nil))
    (cl-loop repeat 2
             while (search-forward text nil t)
             collect (cons (match-beginning 0) (match-end 0))
             ;; Occurrences may overlap.
             do (goto-char (1+ (match-beginning 0))))))

(defun contexture-tools-change--text (beg end)
  "Return the text of this buffer from BEG to END, also beyond a narrowing."
  (save-restriction
    (widen)
    (buffer-substring-no-properties beg end)))

(defun contexture-tools-change--review (done file beg end new project)
  "Show NEW in place of BEG to END, markers in the buffer of FILE, in PROJECT.
Call DONE with what the user decides.  Return a function that withdraws it."
  (let ((buffer (current-buffer))
        (old (contexture-tools-change--text beg end))
        review)
    (letrec ((forget (lambda ()
                       (contexture-review--end review)
                       (when (buffer-live-p buffer)
                         (with-current-buffer buffer
                           (remove-hook 'kill-buffer-hook killed t)))))
             (killed (lambda ()
                       (funcall forget)
                       (funcall done nil (format "The user closed %s" file))))
             (decide (lambda (&optional remark)
                       (funcall forget)
                       (funcall done (with-current-buffer buffer
                                       (contexture-tools-change--outcome
                                        file beg end old new remark))))))
      (setq review (contexture-review--begin beg end :again decide :decided decide))
      (contexture-review--show review new t)
      (add-hook 'kill-buffer-hook killed nil t)
      (contexture-tools-change--point-out buffer beg project)
      (lambda ()
        (unless (contexture-review--ended-p review)
          (contexture--message "The model's change of %s is withdrawn" (buffer-name buffer)))
        (funcall forget)))))

(defun contexture-tools-change--point-out (buffer place project)
  "Show PLACE in BUFFER, of PROJECT, where a model proposes a change.
The selected window stays."
  (unless (active-minibuffer-window)
    (when-let* ((window (display-buffer buffer '(nil (inhibit-same-window . t)))))
      (set-window-point window place)))
  (contexture--message
   "The model proposes a change of %s; %s goes there, C-c C-c accepts and C-c C-k rejects it"
   (file-relative-name (buffer-file-name buffer) project)
   (substitute-command-keys "\\[contexture-review-next]")))

(defun contexture-tools-change--outcome (file beg end old new remark)
  "Return what became of NEW in place of OLD in FILE, now from BEG to END.
REMARK is what the user said, or nil."
  (let ((now (contexture-tools-change--text beg end)))
    (string-join
     (delq nil
           (list (cond ((equal now new) (format "The user accepted the change of %s." file))
                       ((equal now old) (format "The user rejected the change of %s." file))
                       (t (format "The user accepted a part of the change of %s.  \
It differs from what you proposed (-) in (+):\n%s"
                                  file (contexture-tools-change--differences new now))))
                 (and remark (format "The user says: %s" remark))
                 (and (not (equal now old)) (buffer-modified-p)
                      (format "%s is not saved yet." file))))
     "\n")))

(defun contexture-tools-change--differences (new now)
  "Return how the text NOW differs from NEW, as lines with - and +."
  (let ((lines (split-string new "\n")))
    (cl-flet ((marked (sign lines)
                (mapconcat (lambda (line) (concat sign line "\n")) lines "")))
      (mapconcat (pcase-lambda (`(,line ,count . ,text))
                   (concat (marked "-" (cl-subseq lines line (+ line count)))
                           (marked "+" (and (not (string-empty-p text))
                                            (split-string (string-remove-suffix "\n" text)
                                                          "\n")))))
                 (contexture-review--compare new now) "\n"))))

;;;; Which commands may be run

(defcustom contexture-tools-commands nil
  "Commands that models may run in a project, by `run_command'.
Each is (NAME . COMMAND), such as (\"test\" . \"make test\"); it runs in
the project's folder.  Besides, there is `compile-command'.  Set this in a
project's .dir-locals.el, which Emacs asks you about, for that project."
  :type '(alist :key-type (string :tag "Name") :value-type (string :tag "Command"))
  :group 'contexture)

(defcustom contexture-tools-command-seconds 600
  "Number of seconds after which a command that a model runs is stopped."
  :type '(integer :match (lambda (_ value) (<= 1 value 3500)))
  :group 'contexture)

(defun contexture-tools-change--commands ()
  "Return the commands of the project, each (NAME . COMMAND)."
  (let ((buffers (contexture-tools-emacs--buffers)))
    (seq-uniq
     (append (cl-loop for buffer in buffers
                      append (buffer-local-value 'contexture-tools-commands buffer))
             (default-value 'contexture-tools-commands)
             (cl-loop for command in (contexture-tools-change--compilers buffers)
                      collect (cons "compile" command)))
     (lambda (one other) (equal (cdr one) (cdr other))))))

(defun contexture-tools-change--compilers (buffers)
  "Return the values of `compile-command' that the user chose in BUFFERS.
One that a file of the project sets counts only if it is in
`safe-local-variable-values': Emacs takes any string without a question."
  (require 'compile)
  (append
   (cl-loop for buffer in buffers
            for value = (buffer-local-value 'compile-command buffer)
            when (and (local-variable-p 'compile-command buffer)
                      (stringp value)
                      (or (not (assq 'compile-command
                                     (buffer-local-value 'file-local-variables-alist buffer)))
                          (member (cons 'compile-command value) safe-local-variable-values)))
            collect value)
   (let ((value (default-value 'compile-command)))
     (and (stringp value)
          (or (not (equal value (eval (car (get 'compile-command 'standard-value)) t)))
              (file-exists-p (expand-file-name "Makefile" contexture-tool-project)))
          (list value)))))

(defun contexture-tools-change--list-commands ()
  "List the commands of the project."
  (contexture-tools-emacs--project)
  (contexture-tools-emacs--list
   (mapcar (lambda (it) (format "%s: %s" (car it) (string-trim (cdr it))))
           (contexture-tools-change--commands))
   "the user has set no command for this project"))

(defun contexture-tools-change--run-named (done command)
  "Run COMMAND, one of the project's; call DONE with its result."
  (let ((known (mapcar (lambda (it) (string-trim (cdr it)))
                       (contexture-tools-change--commands))))
    (unless (member command known)
      (error "This is none of the project's commands; list_commands has them: run_command \
takes one whole, as it is listed, without its name"))
    (contexture-tools-change--run done command)))

;;;; Running a command

(defconst contexture-tools-change--most-kept 200000
  "Number of characters of output that are kept at least while a command runs.")

(defconst contexture-tools-change--most-failures 20
  "Maximum number of failures that become items of the context.")

(defconst contexture-tools-change--most-listed 50
  "Number of failures after which no more are looked for.")

(defconst contexture-tools-change--grace 2
  "Number of seconds after which a command that was interrupted is killed.")

(defvar-local contexture-tools-change--current nil
  "The run whose output this buffer has.")

(defvar-local contexture-tools-change--items nil
  "Items of the failures of this buffer's last command, (MANAGER . IDS).")
(put 'contexture-tools-change--items 'permanent-local t)

(cl-defstruct (contexture-tools-change--run (:constructor contexture-tools-change--make-run)
                                            (:conc-name contexture-tools-change--run-)
                                            (:copier nil))
  "A run of COMMAND in BUFFER, whose result DONE is called with.
FROM and TO are markers around its output; TIMER will stop it; STOPPED
says why it was stopped; EXIT is the status of its end, (KIND . CODE)."
  command buffer done from to timer stopped exit)

(defun contexture-tools-change--run (done command)
  "Run COMMAND in the project's folder; call DONE with its result.
Return a function that stops it."
  (contexture-tools-change--check-command command)
  (let* ((buffer (contexture-tools-change--start command))
         (run (contexture-tools-change--make-run
               :command command :buffer buffer :done done))
         (seconds contexture-tools-command-seconds))
    (with-current-buffer buffer
      (setq contexture-tools-change--current run)
      (setf (contexture-tools-change--run-from run)
            (copy-marker (process-mark (get-buffer-process buffer))))
      (add-hook 'compilation-filter-hook #'contexture-tools-change--forget-beginning nil t)
      (setq-local compilation-exit-message-function
                  (apply-partially #'contexture-tools-change--exited run))
      (add-hook 'compilation-finish-functions
                (lambda (&rest _) (contexture-tools-change--ended run)) nil t)
      (add-hook 'kill-buffer-hook
                (lambda () (contexture-tools-change--closed run)) nil t))
    (setf (contexture-tools-change--run-timer run)
          (run-at-time seconds nil #'contexture-tools-change--stop run
                       (format "stopped after %d seconds" seconds)))
    (apply-partially #'contexture-tools-change--stop run "cancelled")))

(defun contexture-tools-change--check-command (command)
  "Signal an error unless COMMAND can be shown as it will run."
  (cond ((string-blank-p command) (error "The command is empty"))
        ((> (length command) 2000) (error "The command is too long: at most 2000 characters"))
        ((not (equal command (contexture--visible command)))
         (error "The command has line ends, or characters that cannot be seen"))))

(defun contexture-tools-change--start (command)
  "Start COMMAND in the project's folder and return the buffer of its output."
  (require 'compile)
  (let* ((default-directory (contexture-tools-emacs--project))
         (name (format "*contexture: command in %s*"
                       (file-name-nondirectory (directory-file-name default-directory))))
         (process-connection-type nil)
         (compilation-disable-input t)
         (display-buffer-overriding-action '(display-buffer-no-window
                                             (allow-no-window . t))))
    (when (get-buffer-process name)
      (error "A command still runs in this project"))
    (contexture--message "The model runs %s in %s" command name)
    (compilation-start command nil (lambda (_) name))))

(defun contexture-tools-change--forget-beginning ()
  "Delete the beginning of this buffer's output if there is too much of it."
  (when (> (buffer-size) (* 2 contexture-tools-change--most-kept))
    (save-excursion
      (goto-char (- (point-max) contexture-tools-change--most-kept))
      (let ((inhibit-read-only t)
            ;; Else all that is kept would be searched for failures again.
            (inhibit-modification-hooks t))
        (delete-region (point-min) (line-beginning-position))))))

(defun contexture-tools-change--exited (run kind code message)
  "Record that RUN ended with KIND and CODE; MESSAGE is what Emacs says of it."
  (setf (contexture-tools-change--run-exit run) (cons kind code)
        (contexture-tools-change--run-to run) (point-max-marker))
  (cons message code))

(defun contexture-tools-change--stop (run why)
  "Interrupt RUN because of WHY, and kill it if it goes on for all that."
  (when-let* ((process (get-buffer-process (contexture-tools-change--run-buffer run)))
              ((process-live-p process)))
    (cancel-timer (contexture-tools-change--run-timer run))
    (if (contexture-tools-change--run-stopped run)
        (kill-process process)
      (setf (contexture-tools-change--run-stopped run) why
            (contexture-tools-change--run-timer run)
            (run-at-time contexture-tools-change--grace nil
                         #'contexture-tools-change--stop run why))
      (interrupt-process process))))

(defun contexture-tools-change--closed (run)
  "End RUN, whose buffer is being killed."
  (cancel-timer (contexture-tools-change--run-timer run))
  (unless (contexture-tools-change--run-exit run)
    (funcall (contexture-tools-change--run-done run) nil "The user closed its output")))

(defun contexture-tools-change--ended (run)
  "Look for failures in the output of RUN, which has ended."
  (cancel-timer (contexture-tools-change--run-timer run))
  (require 'contexture-sources)
  (contexture--later #'contexture-tools-change--search
                     run (contexture-tools-change--run-from run) nil))

(defconst contexture-tools-change--step 4000
  "Number of characters of output that are searched for failures at a time.")

(defun contexture-tools-change--search (run position failures)
  "Search RUN's output for failures from POSITION on, and give the result.
FAILURES are the positions of those before it, the last one first."
  (if (not (contexture-tools-change--current-p run))
      (funcall (contexture-tools-change--run-done run) nil "The user closed its output")
    (with-current-buffer (contexture-tools-change--run-buffer run)
      (save-excursion
        (save-restriction
          (widen)
          (let* ((to (contexture-tools-change--run-to run))
                 (next (progn (goto-char (min to (+ position contexture-tools-change--step)))
                              (min to (line-beginning-position 2)))))
            (compilation--ensure-parse next)
            (goto-char position)
            (while (< (point) next)
              (when (contexture-sources--message-here) (push (point) failures))
              (forward-line))
            (if (or (= next to)
                    (nthcdr contexture-tools-change--most-listed failures))
                (contexture-tools-change--give run (nreverse failures))
              ;; Emacs does other things in between.
              (contexture--later #'contexture-tools-change--search run next failures))))))))

(defun contexture-tools-change--current-p (run)
  "Return non-nil if the output of RUN is still there."
  (let ((buffer (contexture-tools-change--run-buffer run)))
    (and (buffer-live-p buffer)
         (eq (buffer-local-value 'contexture-tools-change--current buffer) run))))

(defun contexture-tools-change--give (run failures)
  "Put the FAILURES of RUN, positions here, into the context; give its result."
  ;; What Emacs says above and below the output is no part of a failure.
  (narrow-to-region (contexture-tools-change--run-from run)
                    (contexture-tools-change--run-to run))
  (contexture-tools-change--put
   (let ((metadata (and failures (contexture-sources--error-metadata))))
     (mapcar (lambda (position) (contexture-sources--error-params position metadata))
             (seq-take failures contexture-tools-change--most-failures)))
   (apply-partially (contexture-tools-change--run-done run)
                    (contexture-tools-change--result run failures))))

(defun contexture-tools-change--put (params then)
  "Make PARAMS the failures in this buffer's context, then call THEN.
Those of the command before leave it."
  (let ((buffer (current-buffer))
        (ended (lambda (&rest _) (funcall then))))
    (pcase-let ((`(,manager . ,ids) contexture-tools-change--items))
      (setq contexture-tools-change--items nil)
      (if (not (or ids params)) (funcall then)
        (contexture--with-layers
         (lambda ()
           (let ((to (contexture-current-manager)))
             (contexture-request-batch-async
              (append (mapcar (lambda (id) `(remove-items :manager ,manager :ids (,id))) ids)
                      (mapcar (lambda (it) `(add-item :manager ,to :brief t ,@it)) params))
              :success (lambda (results)
                         (contexture-tools-change--note buffer to (nthcdr (length ids) results))
                         (funcall then))
              :error ended)))
         ended)))))

(defun contexture-tools-change--note (buffer manager results)
  "Remember for BUFFER that RESULTS, of a batch, added items to MANAGER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq contexture-tools-change--items
            (cons manager (delq nil (mapcar (lambda (it)
                                              (plist-get (plist-get it :result) :id))
                                            results)))))))

(defun contexture-tools-change--result (run failures)
  "Return what a model is told of RUN, with FAILURES, positions in this buffer."
  (let ((contexture-tool-project (file-name-as-directory default-directory)))
    (string-join
     (delq nil
           (list (format "%s\n%s." (contexture-tools-change--run-command run)
                         (contexture-tools-change--exit-text run))
                 (and failures (contexture-tools-change--failures failures))
                 (contexture-tools-change--unsaved)
                 (contexture-tools-change--output run)))
     "\n")))

(defun contexture-tools-change--exit-text (run)
  "Return how RUN ended, as words."
  (pcase-let ((`(,kind . ,code) (contexture-tools-change--run-exit run)))
    (concat (and (contexture-tools-change--run-stopped run)
                 (format "It was %s, and " (contexture-tools-change--run-stopped run)))
            (if (eq kind 'exit) (format "ended with exit status %s" code)
              (format "ended by signal %s" code)))))

(defun contexture-tools-change--failures (positions)
  "Return the failures at POSITIONS of this buffer as a list."
  (format "%s%s; the context has %s:\n%s"
          (contexture--count (length positions) "failure")
          (if (nthcdr contexture-tools-change--most-listed positions) " or more" "")
          (if (nthcdr contexture-tools-change--most-failures positions)
              (format "the first %d" contexture-tools-change--most-failures)
            (if (cdr positions) "them" "it"))
          (contexture-tools-emacs--list
           (mapcar #'contexture-tools-change--failure positions) "")))

(defun contexture-tools-change--failure (position)
  "Return the failure at POSITION of this buffer as a line."
  (pcase-let ((`(,file . ,line) (contexture-sources--error-place position))
              (text (save-excursion
                      (goto-char position)
                      (string-trim (buffer-substring-no-properties
                                    (point) (line-end-position))))))
    (if (or (null file) (string-search (file-name-nondirectory file) text))
        (concat "- " text)
      (format "- %s:%s: %s" (contexture-tools-emacs--name file) (or line "?") text))))

(defun contexture-tools-change--unsaved ()
  "Return which files of the project are not saved, as words, or nil."
  (when-let* ((unsaved (cl-remove-if-not #'buffer-modified-p (contexture-tools-emacs--buffers))))
    (format "It ran with these files as they are saved, not as they are in Emacs: %s"
            (mapconcat (lambda (buffer)
                         (contexture-tools-emacs--name (buffer-file-name buffer)))
                       unsaved ", "))))

(defun contexture-tools-change--output (run)
  "Return the end of the output of RUN."
  (let* ((from (contexture-tools-change--run-from run))
         (to (contexture-tools-change--run-to run))
         (beg (max from (- to contexture-tools-emacs--most-output)))
         (text (buffer-substring-no-properties beg to)))
    (when (string-search "\e" text)
      (setq text (ansi-color-filter-apply text)))
    (cond ((string-blank-p text) "It printed nothing.")
          ((= beg from) (concat "Output:\n" text))
          (t (concat "The end of the output:\n" text)))))

;;;; The tools

(contexture-define-tool "propose_edit" #'contexture-tools-change--propose
  '((file "File of the project, or name of an open buffer")
    (new "The new text")
    (old "Text to replace, exactly as it is now; it must occur once.  \
Leave it out for a definition, or for a new file" :optional t)
    (definition "Name of the definition to replace, if old is left out" :optional t))
  :proposes
  :description "Proposes a change of a file in the user's editor, where the user accepts or \
rejects it, whole or in parts, and says what the user decided."
  :seconds 3600 :async t)

(contexture-define-tool "list_commands" #'contexture-tools-change--list-commands nil :reads
  :description "Lists the project's commands, such as those to compile and to test.")

(pcase-dolist
    (`(,name ,function ,what ,description)
     '(("run_command" contexture-tools-change--run-named
        "The command, whole, as list_commands gives it"
        "Runs one of the project's commands, and returns its exit status, its failures and the \
end of its output.")
       ("propose_command" contexture-tools-change--run
        "The command for the shell, in one line"
        "Runs a command that the user is asked about in the project's folder, and returns its \
exit status, its failures and the end of its output.")))
  (contexture-define-tool name function `((command ,what)) :changes
    :description description :touches "all that this command can change"
    :seconds 3600 :async t))

(provide 'contexture-tools-change)
;;; contexture-tools-change.el ends here
