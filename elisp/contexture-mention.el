;;; contexture-mention.el --- Name files, symbols and items after @  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Completes what follows an @ with the project's files, symbols and the
;; items of the context, and reads such mentions for whoever sends a text.
;; Nothing here waits for a disk.

;;; Code:

(require 'cl-lib)
(require 'contexture)
(require 'contexture-sources)
(eval-when-compile (require 'subr-x))

(defvar tags-completion-table)
(defvar tags-table-list)

;;; The names of a project's files

;; For completion: the files below a folder, listed by another process
;; in the background, and cached.  A caller gets an answer at once: during
;; the first listing the names found so far, and later the last complete
;; list.  An outdated list is renewed meanwhile.
;;
;; Git lists its work trees with their submodules, including files that are not
;; yet committed and without ignored ones; find(1) lists all other folders, and
;; those to which links in a work tree lead.  A folder on another machine is
;; listed there in one exchange, over the connection that is open.  This file knows
;; nothing of completion.

(defconst contexture-files--most 100000
  "Maximum number of files in a list; a home folder has more.")

(defconst contexture-files--fresh 5
  "Number of seconds for which a list counts as up to date.")

(defconst contexture-files--passing "~\\'\\|\\(?:\\`\\|/\\)\\.?#[^/]*\\'"
  "Regexp for names that Emacs gives to backups, locks and unsaved text.")

(cl-defstruct (contexture-files--list (:constructor contexture-files--make-list)
                                      (:copier nil))
  "The files below ROOT, or in ROOT alone if SHALLOW.
NAMES are relative to ROOT, the last found first, and DONE is non-nil if
they are complete.  PROCESS makes the next listing, in NEW, and REST is
the beginning of an unfinished name.  TIME is when that listing began."
  root shallow names done process new (rest "") time)

(defvar contexture-files--lists (make-hash-table :test #'equal)
  "Hash table from a folder to its `contexture-files--list'.")

(defun contexture-files--of (root shallow)
  "Return the list of the files below ROOT, and start to renew an old one.
The list may be empty at first.  If SHALLOW, leave out folders below
ROOT.  Return nil if no list can be made."
  (when (or (not (contexture-outside--taken-p root))
            (gethash root contexture-files--lists)
            (and (contexture--remote-p root) (file-remote-p root nil t)))
    (let ((list (or (gethash root contexture-files--lists)
                    (puthash root (contexture-files--make-list
                                   :root root :shallow shallow)
                             contexture-files--lists))))
      (when (and (null (contexture-files--list-process list))
                 (or (null (contexture-files--list-time list))
                     (> (float-time (time-subtract nil (contexture-files--list-time list)))
                        contexture-files--fresh)))
        (if (contexture--remote-p root)
            (contexture-files--ask list)
          (contexture-files--begin
           list (or (contexture-files--git list) (contexture-files--find list)))))
      list)))

(defun contexture-files--wait (list)
  "Wait until LIST is not renewed."
  (while (contexture-files--list-process list)
    ;; Waiting for a process that has ended calls no sentinel while another
    ;; process has output.
    (accept-process-output nil 0.01)))

(defconst contexture-files--remote-pause 0.1
  "Number of seconds until a machine is asked for its files, when Emacs is idle.")

(defun contexture-files--ask (list)
  "Make LIST, of a folder on another machine, once Emacs is idle."
  (setf (contexture-files--list-time list) (current-time))
  (run-with-idle-timer contexture-files--remote-pause nil #'contexture-files--told list))

(defun contexture-files--told (list)
  "Make LIST from what the machine of its folder answers in one exchange.
Without a connection, the list stays as it is."
  (let* ((default-directory (contexture-files--list-root list))
         (script (format "%s | tr '\\0' '\\n' | head -n %d"
                         (contexture--list-files-script (contexture-files--list-shallow list))
                         contexture-files--most))
         (names (contexture--ask-machine script)))
    (setf (contexture-files--list-time list) (current-time)
          (contexture-files--list-done list) t)
    (when names
      (setf (contexture-files--list-names list)
            (nreverse
             (cl-loop for name in (split-string names "\n" t)
                      unless (string-match-p contexture-files--passing name)
                      collect (string-remove-prefix "./" name)))))))

(defun contexture-files--forget ()
  "Forget all lists, and end the processes that make them."
  (maphash (lambda (_ list)
             (when-let* ((process (contexture-files--list-process list)))
               (set-process-sentinel process #'ignore)
               (delete-process process)))
           contexture-files--lists)
  (clrhash contexture-files--lists))

;;;; The programs

(defconst contexture-files--git-script
  "\"$@\" ls-files -z --cached --recurse-submodules || exit 1
\"$@\" ls-files -z --others --exclude-standard
\"$@\" ls-files -z --cached --others --exclude-standard | xargs -0 sh -c '
here=$(pwd -P)
for name; do
  if [ -L \"$name\" ] && [ -d \"$name\" ]; then
    to=$(cd \"./$name\" && pwd -P)
    case $here/ in \"${to%/}\"/*) continue;; esac
    case $to/ in /dev/*|/proc/*|/sys/*|/net/*|/afs/*) continue;; esac
    find -L \"./$name\" -maxdepth 6 -xdev -name \".?*\" -prune -o -type f -print0
  fi
done' sh"
  "Shell script that lists the files of a work tree for completion.
It lists those of its submodules, too, and of the folders to which its links
lead: but not of folders around it, and not of `contexture-outside--special'
ones.  Its arguments are the beginning of a command of Git.")

(defun contexture-files--git (list)
  "Return the command by which Git makes LIST, or nil if it cannot."
  (let ((root (contexture-files--list-root list)))
    (and (not (contexture-files--list-shallow list))
         (executable-find "git")
         (when-let* ((top (locate-dominating-file root ".git")))
           `("sh" "-c" ,contexture-files--git-script "sh" ,@(contexture--git top))))))

(defun contexture-files--find (list)
  "Return the command by which find(1) makes LIST."
  `("find" "." ,@(and (contexture-files--list-shallow list) '("-maxdepth" "1"))
    "-name" ".?*" "-prune" "-o" "-type" "f" "-print0"))

(defun contexture-files--begin (list command)
  "Start COMMAND to make LIST."
  (setf (contexture-files--list-time list) (current-time)
        (contexture-files--list-new list) nil
        (contexture-files--list-rest list) ""
        (contexture-files--list-process list)
        (condition-case nil
            (contexture-files--start list command)
          (error nil)))                 ; there is no such folder
  (unless (contexture-files--list-process list)
    (setf (contexture-files--list-done list) t)))

(defun contexture-files--start (list command)
  "Return a process that runs COMMAND to make LIST."
  (with-temp-buffer                     ; away from buffer-local environments
    (let ((default-directory (contexture-files--list-root list))
          (process-environment (contexture--git-environment))
          (process-adaptive-read-buffering nil)
          (read-process-output-max (max read-process-output-max 65536)))
      (make-process
       :name "contexture files" :noquery t :connection-type 'pipe
       ;; Otherwise error messages would be read as names.
       :command `("/bin/sh" "-c" "exec \"$@\" 2>/dev/null" "sh" ,@command)
       :coding (or file-name-coding-system 'utf-8-unix)
       :filter (apply-partially #'contexture-files--filter list)
       :sentinel (apply-partially #'contexture-files--sentinel list command)))))

(defun contexture-files--filter (list process text)
  "Add the names in TEXT, written by PROCESS, to LIST."
  (let* ((names (split-string (concat (contexture-files--list-rest list) text)
                              "\0"))
         (rest (car (last names)))
         (passing (string-match-p "[#~]" text)))
    (setf (contexture-files--list-rest list) rest)
    (dolist (name (nbutlast names))
      (unless (and passing (string-match-p contexture-files--passing name))
        (push (string-remove-prefix "./" name) (contexture-files--list-new list))))
    (unless (contexture-files--list-done list)
      (setf (contexture-files--list-names list) (contexture-files--list-new list)))
    ;; A home folder has more.
    (when (> (length (contexture-files--list-new list)) contexture-files--most)
      (delete-process process))))

(defun contexture-files--sentinel (list command process _event)
  "Record that PROCESS, which ran COMMAND, has finished LIST.
If Git failed, as it does in a folder that only looks like a work tree,
use find(1)."
  (unless (process-live-p process)
    (setf (contexture-files--list-process list) nil)
    (if (and (equal (car command) "sh")
             (null (contexture-files--list-new list))
             (not (eql (process-exit-status process) 0)))
        (contexture-files--begin list (contexture-files--find list))
      (setf (contexture-files--list-names list) (contexture-files--list-new list)
            (contexture-files--list-new list) nil
            (contexture-files--list-done list) t))))

;;; Name files, symbols and items after @

;; While you write a question, `@' at the beginning of a word and TAB
;; (`completion-at-point') offer the files of the project, the symbols of
;; the buffer and of the project's open files, and the items of its context.  What you accept is added
;; to the context and stays in the text as "@src/main.rs".
;; `contexture-mention-mode' does this in one buffer,
;; `contexture-global-mention-mode' wherever `contexture-mention-modes'
;; says.
;;
;; A mention is `@' and the longest name of a file that follows it, or else a
;; name without blanks, quotes, brackets, commas and semicolons; or `@' and any
;; name in double quotes.
;;
;; Nothing here waits for a disk: files are listed in the background, and a running server is asked for items.  The first
;; completion of a project waits a moment for both, or until a key is
;; pressed; later ones use what has arrived.

(defcustom contexture-mention-modes '((not texinfo-mode) text-mode)
  "Major modes in which `contexture-global-mention-mode' completes after `@'.
Each element is a major mode, which includes modes derived from it, or
\(not MODE).  The first element that matches a buffer decides."
  :type '(repeat (choice (symbol :tag "Major mode")
                         (list :tag "Not in" (const not) (symbol :tag "Major mode"))))
  :group 'contexture)

(defcustom contexture-mention-action 'add
  "Action when you accept a file or symbol after `@'.
`add' inserts it and adds it to the buffer's context, once for each
mention; `insert' only inserts it.  In a conversation, `add' sends it with
that question only, whether you chose or typed it."
  :type '(choice (const :tag "Add it to the context" add)
                 (const :tag "Only insert it" insert))
  :group 'contexture)

(defcustom contexture-mention-limit 200
  "Maximum number of candidates to show after `@'.
Type more of the name to see others."
  :type 'natnum
  :group 'contexture)

(defvar contexture-mention--patience 0.03
  "Maximum number of seconds that the first completion waits for names.
It waits three times as long if the user asked for completion.")

(defconst contexture-mention--symbols-fresh 5
  "Number of seconds for which the symbols of a buffer are cached.")

(defconst contexture-mention--symbols-patience 0.5
  "Maximum number of seconds in which to search more buffers for symbols.")

(defconst contexture-mention--largest-buffer 300000
  "Maximum size, in characters, of a buffer that is searched for symbols.")

(defconst contexture-mention--plain "[^][ \t\r\n\"'`(){},;]"
  "Regexp for one character of a name that surely belongs to it.")

(defconst contexture-mention--loose "[^ \t\r\n\"`]"
  "Regexp for one character that belongs to a name if a file is called so.")

(defconst contexture-mention--before
  ;; Han, Hiragana, Katakana and Hangul are written without spaces.
  "\\(?:^\\|[^[:alnum:]_./+,\\@-]\\|\\cC\\|\\cH\\|\\cK\\|\\ch\\)"
  "Regexp for what may be before the `@' of a mention.
An `@' within an address, or after the comma of Lisp, does not count.")

(defconst contexture-mention--lines
  "\\(?::\\|#L\\)\\([0-9]+\\)\\(?:-L?\\([0-9]+\\)\\)?"
  "Regexp for the lines that may follow the name of a file.")

(defconst contexture-mention--longest-name 200
  "Maximum number of characters of a name without quotes.")

(defvar contexture-mention--items (make-hash-table :test #'equal)
  "Hash table from the name of a context to (TIME STATE . ITEMS).
STATE is `asked' until the first answer and then `known'.  TIME is when the
items were last asked for, or came.")

(defvar contexture-mention--quoted nil
  "Cache of the last list of file names and the candidates made from it.")

(defvar contexture-mention--symbols (make-hash-table :test #'eq :weakness 'key)
  "Hash table from a buffer to its symbols, as (TIME TICK . NAMES).
TIME is when they were found, and TICK the buffer's modification count then.")

(defvar-local contexture-mention--for-question nil
  "Non-nil if what this buffer mentions goes with a question only.
Then completion adds nothing to a context.")

(defvar-local contexture-mention--from-global-mode nil
  "Non-nil if the global mode turned the mode on in this buffer.")

;; Users type the name of a file, not of its folder, and there may be so
;; many files that only the best should be prepared for display.
(add-to-list 'completion-styles-alist
             '(contexture-mention contexture-mention--style-try
                                  contexture-mention--style-all
                                  "Completion after @, matching anywhere in a name."))
(add-to-list 'completion-category-defaults
             '(contexture-mention (styles contexture-mention)))

(cl-defstruct (contexture-mention--completion
               (:constructor contexture-mention--make-completion)
               (:copier nil))
  "One completion: in BUFFER, after START, of names below ROOT.
FILES is a `contexture-files--list' or nil, ITEMS a table from names to
the items of MANAGER, and SYMBOLS are names.  TABLE caches the result, as
(FILES INPUT . CANDIDATES)."
  buffer start root files manager items symbols table)

(defmacro contexture-mention--giving-way (&rest body)
  "Return the value of BODY, or nil if a key is pressed meanwhile.
If the user asked for completion, rather than a package that completes
automatically, run BODY to its end."
  (declare (indent 0) (debug t))
  `(if (contexture-mention--asked-p) (progn ,@body)
     ;; After a key, `while-no-input' returns t, which is no list.
     (car-safe (while-no-input (list (progn ,@body))))))

(defun contexture-mention--asked-p ()
  "Return non-nil if the user, and no package, asks for completion."
  (memq this-command '(completion-at-point indent-for-tab-command minibuffer-complete)))

;;;; The modes

(defvar contexture-mention-mode-map
  (let ((map (make-sparse-keymap))
        (complete '(menu-item "Complete" completion-at-point
                              :filter contexture-mention--if-at-point)))
    (define-key map (kbd "TAB") complete)
    (define-key map (kbd "M-TAB") complete) ; in Text mode up to Emacs 29, Ispell's
    map)
  "Keymap of `contexture-mention-mode', active only within a mention.")

(defun contexture-mention--if-at-point (command)
  "Return COMMAND if point is within a mention, else nil."
  (and (contexture-mention--bounds) command))

;;;###autoload
(define-minor-mode contexture-mention-mode
  "Complete files, symbols and items after `@'.
Type `@' at the beginning of a word, part of a name, and TAB; or let a
package show candidates while you type.  In a buffer with code this
works only in comments and strings.  A file or symbol that you accept is
added to the buffer's context; see `contexture-mention-action'."
  :lighter nil
  :group 'contexture
  (cond (contexture-mention-mode
         (add-hook 'completion-at-point-functions #'contexture-mention-at-point nil t)
         (add-hook 'completion-at-point-functions #'contexture-mention--tell-none 100 t)
         ;; Here, not while you type, is the time to look for the project.
         (with-demoted-errors "Contexture: %S" (contexture-mention--root)))
        (t
         (remove-hook 'completion-at-point-functions #'contexture-mention-at-point t)
         (remove-hook 'completion-at-point-functions #'contexture-mention--tell-none t)
         (kill-local-variable 'contexture-mention--from-global-mode)
         (unless (contexture-mention--buffers)
           (contexture-files--forget)
           (setq contexture-mention--quoted nil)
           (clrhash contexture-mention--symbols)
           (clrhash contexture-mention--items)))))

;;;###autoload
(define-minor-mode contexture-global-mention-mode
  "Turn `contexture-mention-mode' on wherever `contexture-mention-modes' says.
When you turn this mode off, it turns `contexture-mention-mode' off only
where it had turned it on."
  :global t
  :group 'contexture
  (cond (contexture-global-mention-mode
         (add-hook 'after-change-major-mode-hook #'contexture-mention--turn-on)
         (dolist (buffer (buffer-list))
           (with-current-buffer buffer (contexture-mention--turn-on))))
        (t
         (remove-hook 'after-change-major-mode-hook #'contexture-mention--turn-on)
         (dolist (buffer (contexture-mention--buffers))
           (with-current-buffer buffer
             (when contexture-mention--from-global-mode
               (contexture-mention-mode -1)))))))

(defun contexture-mention--turn-on ()
  "Turn the mode on if `contexture-mention-modes' includes this buffer."
  (when (and (not contexture-mention-mode)
             (not (string-prefix-p " " (buffer-name)))
             (contexture-mention--wanted-p contexture-mention-modes))
    (contexture-mention-mode 1)
    (setq contexture-mention--from-global-mode t)))

(defun contexture-mention--wanted-p (modes)
  "Return non-nil if the first match in MODES includes this buffer."
  (cl-loop for entry in modes
           for mode = (if (consp entry) (cadr entry) entry)
           when (derived-mode-p mode) return (symbolp entry)))

(defun contexture-mention--buffers ()
  "Return the buffers that have the mode."
  (cl-remove-if-not (lambda (buffer)
                      (buffer-local-value 'contexture-mention-mode buffer))
                    (buffer-list)))

;;;; Completion at point

;;;###autoload
(defun contexture-mention-at-point ()
  "Complete the mention at point.
This is a function for `completion-at-point-functions'."
  (when-let* ((bounds (contexture-mention--bounds)))
    (let ((completion (contexture-mention--begin (car bounds))))
      (list (car bounds) (cdr bounds)
            (contexture-mention--table completion)
            :exclusive 'no
            :company-prefix-length t
            :company-kind (apply-partially #'contexture-mention--kind completion)
            :annotation-function (apply-partially #'contexture-mention--annotate completion)
            :affixation-function (apply-partially #'contexture-mention--affixate completion)
            :exit-function (apply-partially #'contexture-mention--accepted completion)))))

(defun contexture-mention--tell-none ()
  "Say that nothing completes the mention at point, if completion was asked for.
This is the last of `completion-at-point-functions'."
  (when-let* ((bounds (and (contexture-mention--asked-p) (contexture-mention--bounds))))
    (contexture--message "No file, symbol or item matches @%s"
                         (buffer-substring-no-properties (car bounds) (cdr bounds)))
    nil))

(defun contexture-mention--bounds ()
  "Return the bounds of the name after `@' around point, or nil."
  (unless (and (derived-mode-p 'prog-mode)
               (save-match-data (not (nth 8 (syntax-ppss)))))
    (let ((from (let ((inhibit-field-text-motion t)) ; a prompt is on the line, too
                  (max (line-beginning-position) (- (point) 300)))))
      (cl-flet ((begins (name)
                  (and (looking-back (concat contexture-mention--before "@\\("
                                             name "\\)")
                                     from)
                       (match-beginning 1))))
        (if-let* ((start (begins (concat "\"[^\"\n]*\\|" contexture-mention--plain "*"))))
            (cons start
                  (if (eq (char-after start) ?\")
                      (+ (point) (if (eq (char-after) ?\") 1 0))
                    ;; Punctuation after it belongs to the sentence.
                    (save-excursion
                      (let ((point (point)))
                        (while (looking-at-p contexture-mention--plain) (forward-char))
                        (skip-chars-backward ".:!?" point)
                        (point)))))
          (when-let* ((start (begins (concat contexture-mention--loose "+"))))
            (and (contexture-mention--begins-file-p
                  (buffer-substring-no-properties start (point)))
                 (cons start (point)))))))))

(defun contexture-mention--begins-file-p (text)
  "Return non-nil if TEXT is in the name of one of the project's listed files."
  (when-let* ((list (gethash (contexture-mention--root) contexture-files--lists)))
    (contexture-mention--style-matches text (contexture-files--list-names list) nil)))

(defun contexture-mention--root ()
  "Return the folder to which file names are relative."
  (file-name-as-directory
   (or (contexture--project-root) (contexture--remote-root)
       (expand-file-name default-directory))))

(defun contexture-mention--project-p ()
  "Return non-nil if this buffer is in a project, perhaps on another machine."
  (or (contexture--project-root) (contexture--remote-root)))

(defun contexture-mention--begin (start)
  "Return a new `contexture-mention--completion' of the name at START."
  (let* ((root (contexture-mention--root))
         (manager (or (contexture--known-context)
                      (when (contexture-running-p)
                        (contexture--with-layers #'ignore #'ignore)
                        nil)))
         (files (contexture-files--of root (not (contexture-mention--project-p)))))
    (contexture-mention--ask-items manager)
    (contexture-mention--wait
     (lambda ()
       (pcase-let ((`(,time ,state) (gethash manager contexture-mention--items)))
         (and (or (not (eq state 'asked)) (contexture-mention--old-p time))
              (or (null files) (contexture-files--list-done files)
                  (contexture-mention--old-p (contexture-files--list-time files)))))))
    (contexture-mention--make-completion
     :buffer (current-buffer) :start start :root root :files files
     :manager manager
     :items (contexture-mention--name-items
             root (cddr (gethash manager contexture-mention--items)))
     :symbols (contexture-mention--as-symbols (contexture-mention--symbols)))))

(defun contexture-mention--old-p (time)
  "Return non-nil if TIME is more than a second ago.
Completion then no longer waits for what it asked for."
  (> (float-time (time-subtract nil time)) 1))

(defun contexture-mention--wait (done)
  "Wait a moment for DONE to return non-nil, or until a key is pressed."
  (let ((end (+ (float-time) (* contexture-mention--patience
                                (if (contexture-mention--asked-p) 3 1)))))
    (contexture-mention--giving-way
      (while (not (or (funcall done) (> (float-time) end)))
        (accept-process-output nil 0.002)))))

(defun contexture-mention--table (completion)
  "Return the completion table of COMPLETION."
  (lambda (string predicate action)
    (pcase action
      ('metadata
       (let ((sort (apply-partially #'contexture-mention--best completion)))
         `(metadata (category . contexture-mention)
                    (contexture-mention-partial
                     . ,(contexture-mention--partial-p completion))
                    (display-sort-function . ,sort)
                    (cycle-sort-function . ,sort))))
      ;; SLY asks each table for more than there is, even about no string.
      ((or 'nil 't 'lambda)
       (contexture-mention--giving-way
         (let ((candidates (contexture-mention--candidates completion)))
           (if action
               (complete-with-action action candidates string predicate)
             (contexture-mention--try completion string candidates predicate))))))))

(defun contexture-mention--try (completion string candidates predicate)
  "Return the value of `try-completion' for STRING in COMPLETION.
CANDIDATES and PREDICATE are its other arguments.  Emacs asks this to
find out whether there is anything to complete, so candidates with
STRING in the middle count.  While files are still being found, the
common prefix of the first ones must not be used."
  (cond ((and (not (contexture-mention--partial-p completion))
              (try-completion string candidates predicate)))
        ((contexture-mention--style-matches string candidates predicate) string)))

(defun contexture-mention--partial-p (completion)
  "Return non-nil if more files are still being found for COMPLETION."
  (when-let* ((list (contexture-mention--completion-files completion)))
    (not (contexture-files--list-done list))))

(defun contexture-mention--candidates (completion)
  "Return all candidates of COMPLETION: items, symbols and files."
  (let* ((list (contexture-mention--completion-files completion))
         (files (and list (contexture-files--list-names list)))
         (buffer (contexture-mention--completion-buffer completion))
         (input (when (with-current-buffer buffer
                        (derived-mode-p 'emacs-lisp-mode 'inferior-emacs-lisp-mode))
                  (contexture-mention--input completion)))
         (known (contexture-mention--completion-table completion)))
    (if (and known (eq (car known) files) (equal (cadr known) input))
        (cddr known)
      (let* ((items (contexture-mention--completion-items completion))
             (candidates (nconc (delete-dups
                                 (append (contexture--texts (hash-table-keys items))
                                         (contexture-mention--completion-symbols completion)
                                         (contexture-mention--lisp-symbols input)))
                                (contexture-mention--file-names files items))))
        (setf (contexture-mention--completion-table completion)
              (cons files (cons input candidates)))
        candidates))))

(defun contexture-mention--file-names (files items)
  "Return FILES as candidates, without those that are among ITEMS."
  (unless (eq files (car contexture-mention--quoted))
    (setq contexture-mention--quoted
          (cons files (delq nil (mapcar #'contexture-mention--quote files)))))
  (let ((names (cdr contexture-mention--quoted)))
    (if (= (hash-table-count items) 0) names
      (cl-remove-if (lambda (name) (gethash name items)) names))))

(defun contexture-mention--quote (name)
  "Return NAME, quoted if needed, or nil if no mention can express it."
  (cond ((string-match-p "[\"\n\r]" name) nil)
        ((not (string-match-p "[ \t`]" name)) name)
        (t (concat "\"" name "\""))))

(defun contexture-mention--unquote (name)
  "Return NAME, from a mention, without its quotes."
  (contexture--trim name "\""))

(defun contexture-mention--input (completion)
  "Return the text typed after the `@' of COMPLETION, or the empty string.
The text is not known when completing in the minibuffer."
  (with-current-buffer (contexture-mention--completion-buffer completion)
    (let ((start (contexture-mention--completion-start completion)))
      (if (<= start (point) (line-end-position))
          (buffer-substring-no-properties start (point))
        ""))))

(defun contexture-mention--best (completion candidates)
  "Return the best of CANDIDATES of COMPLETION, the best first.
Return at most `contexture-mention-limit' of them.  Items come first, then
symbols, and files whose own names begin with the input, then other files;
among equals, shorter names come first.  There may be very many, so this
sorts into buckets first."
  (let* ((input (string-trim-left (contexture-mention--input completion) "\""))
         (begins (if (string-empty-p input) ""
                   (concat "\\(?:\\`\"?\\|/\\)" (regexp-quote input) "[^/]*\\'")))
         (case-fold-search (isearch-no-upper-case-p input nil))
         (buckets (make-vector 384 nil))
         (left contexture-mention-limit)
         best)
    (dolist (candidate candidates)
      (push candidate
            (aref buckets (+ (* 128 (contexture-mention--rank completion candidate begins))
                             (min 127 (length candidate))))))
    (cl-loop for bucket across buckets while (> left 0)
             for chosen = (seq-take (sort bucket #'string<) left)
             do (push chosen best) (cl-decf left (length chosen)))
    (apply #'append (nreverse best))))

(defun contexture-mention--rank (completion candidate begins)
  "Return the rank of CANDIDATE of COMPLETION, from 0 (the best) to 2.
BEGINS is a regexp for files whose own names begin with the input."
  (cond ((gethash candidate (contexture-mention--completion-items completion)) 0)
        ((or (get-text-property 0 'contexture-symbol candidate)
             (string-match-p begins candidate))
         1)
        (t 2)))

;;;; Matching

(defun contexture-mention--style-matches (string table predicate)
  "Return the candidates of TABLE that contain STRING and fit PREDICATE.
As in a search, capitals count only if STRING has some."
  (let ((completion-ignore-case (isearch-no-upper-case-p string nil))
        (completion-regexp-list
         (cons (regexp-quote string) completion-regexp-list)))
    (all-completions "" table predicate)))

(defun contexture-mention--style-try (string table predicate _point)
  "Return the completion of STRING with TABLE and PREDICATE.
STRING stays as it is if some matches do not begin with it, or if more
matches may come."
  (let ((matches (contexture-mention--style-matches string table predicate)))
    (cond ((null matches) nil)
          ((completion-metadata-get (completion-metadata string table predicate)
                                    'contexture-mention-partial)
           (cons string (length string)))
          ((cdr matches)
           (let ((common (try-completion "" matches)))
             (if (and (stringp common) (string-prefix-p string common t))
                 (cons common (length common))
               (cons string (length string)))))
          ((equal string (car matches)) t)
          (t (cons (substring-no-properties (car matches)) (length (car matches)))))))

(defun contexture-mention--style-all (string table predicate _point)
  "Return the best candidates for STRING of TABLE that fit PREDICATE."
  (when-let* ((matches (contexture-mention--style-matches string table predicate)))
    (let ((best (completion-metadata-get
                 (completion-metadata string table predicate)
                 'display-sort-function)))
      (nconc (mapcar (apply-partially #'contexture-mention--highlight string)
                     (if best (funcall best matches) matches))
             0))))

(defun contexture-mention--highlight (string candidate)
  "Return CANDIDATE with the match of STRING highlighted."
  (let ((copy (copy-sequence candidate))
        (start (let ((case-fold-search t)) ; it matches, perhaps in other case
                 (string-match-p (regexp-quote string) candidate))))
    (when start
      (add-face-text-property start (+ start (length string))
                              'completions-common-part nil copy))
    copy))

;;;; Items

(defun contexture-mention--ask-items (manager)
  "Fetch the items of MANAGER, a name or a list of layers, if a server runs."
  (pcase-let ((`(,time ,state . ,items)
               (gethash manager contexture-mention--items)))
    (when (and manager (contexture-running-p)
               (or (null time)
                   (and (eq state 'known) (contexture-mention--old-p time))))
      (puthash manager `(,(current-time) ,(if time 'known 'asked) ,@items)
               contexture-mention--items)
      (contexture-request-async
       'list-items (append (contexture--context-params manager) '(:brief t))
       :success (lambda (items)
                  (puthash manager `(,(current-time) known ,@items)
                           contexture-mention--items))
       :error (lambda (_) (remhash manager contexture-mention--items))))))

(defun contexture-mention--name-items (root items)
  "Return a table from names to ITEMS.
The names of an item are its symbol and its file, which is relative to
ROOT, or its buffer.  An item without another name is named by its id."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (item items table)
      (dolist (name (or (cl-remove-if (lambda (name) (gethash name table))
                                      (contexture-mention--item-names root item))
                        (list (plist-get item :id))))
        (puthash name item table)))))

(defun contexture-mention--item-names (root item)
  "Return the names of ITEM that a mention can express.
The name of a file below ROOT is relative to ROOT."
  (let* ((metadata (plist-get item :metadata))
         (symbol (plist-get metadata :symbol)))
    (when (and (contexture-mention--named-p metadata)
               (or (plist-get metadata :filename) (plist-get metadata :buffer)))
      (delq nil (mapcar #'contexture-mention--quote
                        `(,(contexture--source `(:project ,root ,@metadata))
                          ,@(and symbol (list symbol))))))))

(defun contexture-mention--named-p (metadata)
  "Return non-nil if the item with METADATA has the text of what it names.
A diff, for example, only names the file that it is about."
  (not (memq (plist-get metadata :origin)
             '(:diff :diagnostic :compilation :tree :listing))))

;;;; Symbols

(defun contexture-mention--symbols ()
  "Return the symbols of this buffer, of open files of the project, and of tags.
If there are so many files that this takes long, leave some to the next time."
  (let ((end (+ (float-time) contexture-mention--symbols-patience)))
    (append (cl-loop for buffer in (cl-adjoin (current-buffer)
                                              (contexture-symbol--code-buffers))
                     append (contexture-mention--symbols-of buffer)
                     while (< (float-time) end))
            (contexture-mention--tags))))

(defun contexture-mention--symbols-of (buffer)
  "Return the names of the symbols of BUFFER, as cached."
  (with-current-buffer buffer
    (pcase-let ((`(,time ,tick . ,names) (gethash buffer contexture-mention--symbols)))
      (if (or (equal tick (buffer-chars-modified-tick))
              (and time (< (float-time (time-subtract nil time))
                           contexture-mention--symbols-fresh))
              (> (buffer-size) contexture-mention--largest-buffer))
          names
        (pcase (contexture-mention--giving-way
                 (list (save-excursion (mapcar #'car (contexture-symbol--imenu)))))
          ('nil names)
          (`(,found)
           (puthash buffer `(,(current-time) ,(buffer-chars-modified-tick) ,@found)
                    contexture-mention--symbols)
           found))))))

(defun contexture-mention--as-symbols (names)
  "Return those of NAMES that need no quotes, as candidates for symbols."
  (cl-loop with plain = (concat "\\`" contexture-mention--plain "+\\'")
           for name in names
           when (string-match-p plain name)
           collect (propertize name 'contexture-symbol t)))

(defun contexture-mention--tags ()
  "Return the names of all tags that some command has read already."
  (cl-loop for file in (bound-and-true-p tags-table-list)
           for buffer = (get-file-buffer file)
           for table = (and buffer
                            (buffer-local-value 'tags-completion-table buffer))
           when (or (consp table) (obarrayp table))
           append (all-completions "" table)))

(defun contexture-mention--lisp-symbols (prefix)
  "Return the symbols of Emacs Lisp that begin with PREFIX; none if it is nil.
A single letter matches too many."
  (when (> (length prefix) 1)
    (contexture-mention--as-symbols
     (all-completions prefix obarray
                      (lambda (symbol) (or (fboundp symbol) (boundp symbol)))))))

;;;; What is shown

(defun contexture-mention--kind (completion candidate)
  "Return the kind of CANDIDATE of COMPLETION, for an icon."
  (cond ((gethash candidate (contexture-mention--completion-items completion)) 'reference)
        ((get-text-property 0 'contexture-symbol candidate) 'function)
        (t 'file)))

(defun contexture-mention--annotate (completion candidate)
  "Return the annotation of CANDIDATE of COMPLETION."
  (let ((item (gethash candidate (contexture-mention--completion-items completion))))
    (cond (item
           (concat " in context"
                   (when (equal candidate (plist-get item :id))
                     (concat ": " (contexture--description
                                   (plist-get item :metadata))))
                   ", "
                   (contexture--count (or (plist-get item :tokens) 0) "token")))
          ((get-text-property 0 'contexture-symbol candidate) " symbol")
          (t ""))))

(defun contexture-mention--affixate (completion candidates)
  "Return CANDIDATES of COMPLETION, each with a prefix and a suffix to show."
  (let ((column (+ 2 (min 50 (cl-loop for candidate in candidates
                                      maximize (length candidate))))))
    (mapcar (lambda (candidate)
              (let ((note (contexture-mention--annotate completion candidate)))
                (list (contexture--visible-candidate candidate) ""
                      (if (string-empty-p note) ""
                        (propertize
                         (concat (make-string (max 1 (- column (length candidate)))
                                              ?\s)
                                 (string-trim-left note))
                         'face 'completions-annotations)))))
            candidates)))

;;;; Accepting

(defun contexture-mention--accepted (completion name status)
  "Add NAME, chosen in COMPLETION, if STATUS says that it is final."
  (when (memq status '(finished sole))
    (with-current-buffer (contexture-mention--completion-buffer completion)
      (let ((start (- (point) (length name))))
        (unless (or (< start (point-min))
                    (gethash name (contexture-mention--completion-items completion))
                    (equal (get-text-property start 'contexture-mention) name))
          (with-silent-modifications
            (add-text-properties start (point)
                                 (list 'contexture-mention (substring-no-properties name)
                                       'rear-nonsticky '(contexture-mention))))
          (when (eq contexture-mention-action 'add)
            (condition-case problem
                (contexture-mention--take completion name start)
              (user-error (contexture--message "%s" (error-message-string problem))))))))))

(defun contexture-mention--take (completion name start)
  "Add NAME, chosen in COMPLETION and written at START, to the context.
If it goes with a question, only remember which definition was meant."
  (let ((filep (contexture-mention--file-p completion name)))
    (cond ((and contexture-mention--for-question filep))
          (contexture-mention--for-question
           (let ((call (cons 'add-item (contexture-symbol--find name))))
             (with-silent-modifications
               (put-text-property start (point) 'contexture-call call)
               (put-text-property start (point) 'rear-nonsticky
                                  '(contexture-mention contexture-call)))))
          (filep
           (contexture-add-file
            (or (contexture-mention--listed (contexture-mention--unquote name)
                                            (contexture-mention--completion-root completion))
                (contexture--user-error "%s is packed, or no file" name))))
          (t (contexture-add-symbol name)))))

(defun contexture-mention--listed (name root)
  "Return the full name of NAME, which the list of the files below ROOT has.
Return nil if that is a file that may not be looked at."
  (if (contexture--remote-p root) (cadr (contexture-mention--file-target name root))
    (contexture--outside-file (concat "./" name) root)))

(defun contexture-mention--file-p (completion name)
  "Return non-nil if NAME is one of COMPLETION's files."
  (when-let* ((list (contexture-mention--completion-files completion)))
    (member (contexture-mention--unquote name)
            (contexture-files--list-names list))))

;;; Read what follows an @

;; `contexture-mention-in-string' tells which files, items and symbols a
;; text mentions, for code that sends the text to a model.

(defconst contexture-mention--pictures
  (expand-file-name (locate-user-emacs-file "contexture-pictures/"))
  "Folder for pictures that a question shows and that have no file in the project.")

(defvar contexture-mention--entries nil
  "What folders list while a text is read, as (ROOT . TABLE), or nil.
TABLE is from a folder, as mentions name it, to a hash table of the names in
it, or to t if they are not known.  A long text with many mentions would ask
the disk for many more names.")

(defvar contexture-mention--looks 0
  "Number of files that may still be looked at while a text is read.")

(defconst contexture-mention--most 200
  "Number of mentions of a text that count; nobody writes more.")

(defconst contexture-mention--most-looks 1000
  "Maximum number of files to look at because a text may mention them.")

(defconst contexture-mention--most-folders 50
  "Maximum number of folders to list because a text may mention their files.")

(defconst contexture-mention--most-names 10000
  "Number of names in a folder above which they are not listed.")

;;;###autoload
(defun contexture-mention-in-string (string &optional directory)
  "Return the mentions in STRING, in order.
Each is a list (START END KIND TARGET): START is the index of the `@', and
END the one after the mention.  KIND is

  `file'       and TARGET its absolute name; if the mention ends in
               :LINE or :LINE-LINE, the first and the last line follow
  `directory'  and TARGET its absolute name
  `item'       and TARGET its id
  `symbol'     and TARGET its name, which need not be that of a symbol

Names of files are relative to DIRECTORY, by default the root of the
project around this buffer.  A file on another machine counts only if
that machine has listed it for completion.  The machine is not asked
now.  Only the first `contexture-mention--most' mentions count."
  (let ((reading (contexture-mention--begin-reading string directory)))
    (cl-loop while (contexture-mention--reading-from reading)
             for mention = (contexture-mention--next reading)
             when mention collect mention)))

(cl-defstruct (contexture-mention--reading (:constructor contexture-mention--make-reading)
                                           (:copier nil))
  "State of reading the mentions in STRING, relative to ROOT.
FROM is where to go on, or nil at the end, and LEFT the number of mentions that
still count.  ENTRIES and LOOKS are as the variables of these names."
  string root entries (looks contexture-mention--most-looks)
  (left contexture-mention--most) (from 0))

(defun contexture-mention--begin-reading (string &optional directory)
  "Return the state of reading the mentions in STRING, relative to DIRECTORY."
  (let ((root (file-name-as-directory
               (expand-file-name (or directory (contexture-mention--root))))))
    (contexture-mention--make-reading
     :string string :root root :entries (cons root (make-hash-table :test #'equal)))))

(defun contexture-mention--next (reading)
  "Return the next mention of READING, which goes on behind it.
Return nil if no mention follows, or if no name follows the `@'."
  (let* ((string (contexture-mention--reading-string reading))
         (contexture-mention--entries (contexture-mention--reading-entries reading))
         (contexture-mention--looks (contexture-mention--reading-looks reading))
         (start (and (>= (cl-decf (contexture-mention--reading-left reading)) 0)
                     (string-match (concat contexture-mention--before "\\(@\\)[^ \t\r\n]")
                                   string (contexture-mention--reading-from reading))
                     (match-beginning 1))))
    (if (null start) (setf (contexture-mention--reading-from reading) nil)
      (let* (;; Emacs would search all of a long text for what is to come next.
             (piece (substring string (1+ start)
                               (min (length string) (+ start contexture-outside--longest))))
             (mention (contexture-mention--read piece 0 (contexture-mention--reading-root reading)))
             (end (+ 1 start (car mention))))
        (setf (contexture-mention--reading-from reading) end
              (contexture-mention--reading-looks reading) contexture-mention--looks)
        (when (cdr mention) `(,start ,end ,@(cdr mention)))))))

(defun contexture-mention--may-be-p (name)
  "Return non-nil if NAME can be that of a file or folder that is mentioned.
It cannot if one of the folders that it names does not list the next name."
  (or (null contexture-mention--entries)
      (contexture--remote-p (car contexture-mention--entries))
      (let ((from 0) (may t) slash)
        (while (and may (setq slash (string-search "/" name from)))
          (setq may (contexture-mention--in-folder-p (substring name from slash)
                                                     (substring name 0 from))
                from (1+ slash)))
        (and may (contexture-mention--in-folder-p (substring name from)
                                                  (substring name 0 from))))))

(defun contexture-mention--in-folder-p (name folder)
  "Return non-nil if FOLDER, as a mention names it, may have a file called NAME."
  (or (member name '("" "." ".." "~"))
      (pcase-let* ((`(,root . ,table) contexture-mention--entries)
                   (entries (or (gethash folder table)
                                (puthash folder (contexture-mention--list-folder folder root table)
                                         table))))
        (or (eq entries t) (gethash name entries)))))

(defun contexture-mention--list-folder (folder root table)
  "Return a hash table of the names in FOLDER, relative to ROOT, or t if unknown.
It has the beginnings of names up to a blank, too.
TABLE has what is known of other folders, of which there may be enough."
  (if (> (hash-table-count table) contexture-mention--most-folders) t
    (let* ((names (make-hash-table :test #'equal))
           (file (contexture--outside-file (if (string-empty-p folder) "./" folder) root))
           (listed (when (and file (file-directory-p file))
                     (condition-case nil
                         (directory-files file nil nil t (1+ contexture-mention--most-names))
                       (error t)))))
      (if (or (eq listed t) (nthcdr contexture-mention--most-names listed)) t
        (dolist (name listed names)
          (puthash name t names)
          ;; Names begin with these, too.
          (let ((from 0) blank)
            (while (setq blank (string-match-p "[ \t]" name from))
              (setq from (1+ blank))
              (puthash (substring name 0 from) t names))))))))

(defun contexture-mention--read (string start root)
  "Return (END KIND TARGET . LINES) of the mention in STRING.
Its name begins at START.  Without quotes, that is the longest name of a file
below ROOT that STRING has there, or else a symbol.  The value is (END) if
there is no name."
  (cond ((and (eq ?\" (aref string start))
              (string-match "\"\\([^\"\n]+\\)\"" string start)
              (= start (match-beginning 0)))
         (let* ((name (match-string 1 string))
                (end (match-end 0))
                (lines (contexture-mention--lines-at string end))
                (target (contexture-mention--target name root t)))
           (if (and lines (eq (car target) 'file))
               `(,(car lines) ,@target ,@(cdr lines))
             (cons end target))))
        ((contexture-mention--longest-file string start root))
        ((and (string-match (concat contexture-mention--plain "+") string start)
              (= start (match-beginning 0)))
         (let ((name (contexture--trim-right
                      ;; Punctuation of other scripts ends a name.
                      (replace-regexp-in-string "[^[:ascii:][:alnum:]].*\\'" ""
                                                (match-string 0 string))
                      ".:!?")))
           (if (string-empty-p name) (list (match-end 0))
             (cons (+ start (length name)) (contexture-mention--target name root nil)))))
        (t (list start))))

(defun contexture-mention--longest-file (string start root)
  "Return (END KIND TARGET . LINES) of the longest name of a file, or nil.
It begins at START in STRING, and is that of a file or folder below ROOT."
  (let* ((end (min (or (string-match "[\r\n\"`]" string start) (length string))
                   (+ start contexture-mention--longest-name)))
         (slash (string-search "/" (substring string start end)))
         (end (if (or (null slash)
                      (contexture-mention--may-be-p (substring string start (+ start slash 1))))
                  end
                (+ start slash)))
         (end (contexture-mention--longest-begun string start end)))
    (cl-loop for stop downfrom end above start
             for name = (substring-no-properties string start stop)
             for target = (and (contexture-mention--may-be-p name)
                               (contexture-mention--boundary-p string stop)
                               (contexture-mention--file-target name root))
             when target
             return (let ((lines (and (eq (car target) 'file)
                                      (contexture-mention--lines-at string stop))))
                      (if lines `(,(car lines) ,@target ,@(cdr lines))
                        (cons stop target))))))

(defun contexture-mention--longest-begun (string start end)
  "Return the end, at most END, of the longest name that may begin at START.
A name goes on after a blank in STRING only if a listed name does."
  (let ((from start) blank)
    (while (and (setq blank (string-match-p "[ \t]" string from))
                (< blank end)
                (contexture-mention--may-be-p (substring string start (1+ blank))))
      (setq from (1+ blank)))
    (if (and blank (< blank end)) blank end)))

(defun contexture-mention--lines-at (string start)
  "Return (END FIRST LAST) of the lines that STRING names at START, or nil."
  (let ((part (substring string start (min (length string) (+ start 40)))))
    (when (string-match (concat "\\`" contexture-mention--lines) part)
      (list (+ start (match-end 0))
            (string-to-number (match-string 1 part))
            (string-to-number (or (match-string 2 part) (match-string 1 part)))))))

(defun contexture-mention--boundary-p (string index)
  "Return non-nil if a name may end before INDEX in STRING.
A name ends before line numbers, a blank, or punctuation that is not
within a name."
  (let ((last (aref string (1- index)))
        (next (and (< index (length string)) (aref string index)))
        (then (and (< (1+ index) (length string)) (aref string (1+ index)))))
    (cl-flet ((ascii-word (char) (and char (< char 128)
                                      (string-match-p "[[:alnum:]_]" (char-to-string char))))
              (word (char) (and char (string-match-p "[[:alnum:]]" (char-to-string char))))
              (closed (char) (and char (string-match-p "\\cC\\|\\cH\\|\\cK\\|\\ch"
                                                       (char-to-string char)))))
      (cond ((memq last '(?\s ?\t)) nil)
            ((memq next '(nil ?\s ?\t ?\n ?\r ?\")) t)
            ((ascii-word next) nil)
            ((word next) (or (closed next) (ascii-word last)))
            ((> next 127) t)
            ((or (eq next ?:) (contexture-mention--lines-at string index)) t)
            ((eq next ?/) nil)
            (t (not (or (ascii-word then) (memq then '(?/ ?.)))))))))

(defun contexture-mention--target (name root quoted)
  "Return (KIND TARGET . LINES) for NAME, relative to ROOT.
A QUOTED name that is nothing else counts as the name of a file."
  (pcase-let ((`(,bare . ,lines) (contexture-mention--split-lines name)))
    (or (and (let ((case-fold-search nil)) (string-match-p "\\`ctx-[0-9]+\\'" name))
             (list 'item name))
        (contexture-mention--file-target name root)
        (and lines
             (when-let* ((target (contexture-mention--file-target bare root)))
               (and (eq (car target) 'file) (append target lines))))
        (if quoted (list 'file (or (contexture--outside-file name root) name))
          (list 'symbol name)))))

(defun contexture-mention--split-lines (name)
  "Return NAME without the lines that it may end in, and those lines."
  (if (not (string-match (concat contexture-mention--lines "\\'") name))
      (list name)
    (list (substring name 0 (match-beginning 0))
          (string-to-number (match-string 1 name))
          (string-to-number (or (match-string 2 name) (match-string 1 name))))))

(defun contexture-mention--file-target (name root)
  "Return (KIND TARGET) if NAME, relative to ROOT, is a file or folder here."
  (if (contexture--remote-p root)
      ;; Its machine told the name.
      (when-let* ((list (gethash root contexture-files--lists))
                  ((equal name (contexture--visible name)))
                  ((member name (contexture-files--list-names list))))
        (list 'file (concat root name)))
    (when-let* (((contexture-mention--may-be-p name))
                ((or (null contexture-mention--entries)
                     (>= (cl-decf contexture-mention--looks) 0)))
                (file (contexture--outside-file name root)))
      (cond ((file-directory-p file) (list 'directory (file-name-as-directory file)))
            ((file-exists-p file) (list 'file file))))))

;;; What a question mentions

;; What is mentioned in a conversation goes with that question.  It counts
;; whether it was typed or chosen from completion: if it means one thing, that
;; goes along, and if it means several or none, a message says so.

(defconst contexture-mention--longest-wait 1
  "Maximum number of seconds to wait for a list of files, to tell what is meant.")

(defconst contexture-mention--most-seconds 5
  "Maximum number of seconds in which to tell what the mentions of a text mean.")

(defconst contexture-mention--at-once 0.05
  "Number of seconds after which to let Emacs handle input in between.")

(defvar-local contexture-mention--told nil
  "Mentions in this buffer that the user was told match nothing.")

(cl-defstruct (contexture-mention--sought (:constructor contexture-mention--make-sought)
                                         (:copier nil))
  "State of telling what the mentions of READING mean, which began at TIME.
ITEMS need not be added.  MENTION is the next one, once it was read; KNOWN is a
hash table of targets whose meaning is told.  CALLS, UNKNOWN and REMARKS are as
`contexture-mention--meanings' returns them, the last first, and NUMBER is that of the
mentions."
  reading items mention (known (make-hash-table :test #'equal)) (time (float-time))
  calls unknown remarks (number 0))

(defun contexture-mention--begin-meanings (string items)
  "Return the state of telling what the mentions in STRING add to ITEMS."
  (contexture-mention--make-sought
   :reading (contexture-mention--begin-reading string) :items items))

(defun contexture-mention--meanings (sought)
  "Return what the mentions of SOUGHT mean, as (CALLS UNKNOWN REMARKS).
CALLS, pairs (METHOD . PARAMS), add what is meant, except what is among
the items of SOUGHT.  UNKNOWN are the mentions that match nothing, and
REMARKS phrases about those that mean several things.  What is not known
yet is left out."
  (list (and (eq contexture-mention-action 'add)
             (reverse (contexture-mention--sought-calls sought)))
        (reverse (contexture-mention--sought-unknown sought))
        (append (reverse (contexture-mention--sought-remarks sought))
                (when (= (contexture-mention--sought-number sought) contexture-mention--most)
                  (list (format "only the first %d mentions count" contexture-mention--most))))))

(defun contexture-mention--look-up (sought)
  "Find out for a moment what the mentions of SOUGHT mean.
Return t if all are known then, and nil if that takes longer."
  (let ((reading (contexture-mention--sought-reading sought))
        (limit (+ (float-time) contexture-mention--at-once)))
    (cl-loop
      (let ((mention (or (cl-shiftf (contexture-mention--sought-mention sought) nil)
                         (and (contexture-mention--reading-from reading)
                              (contexture-mention--next reading)))))
        (cond ((null mention)
               (unless (contexture-mention--reading-from reading) (cl-return t)))
              ((or (contexture-mention--wait-p sought mention) (> (float-time) limit))
               (setf (contexture-mention--sought-mention sought) mention)
               (cl-return nil))
              (t (contexture-mention--look-up-one sought mention)))))))

(defun contexture-mention--wait-p (sought mention)
  "Return non-nil if a list of files is made that may tell of MENTION.
MENTION is the next one of SOUGHT."
  (and (eq 'symbol (nth 2 mention))
       (< (- (float-time) (contexture-mention--sought-time sought))
          contexture-mention--longest-wait)
       (when-let* ((list (contexture-mention--files)))
         (contexture-files--list-process list))))

(defun contexture-mention--look-up-one (sought mention)
  "Record in SOUGHT what MENTION, (START END KIND . TARGET), means."
  (pcase-let* ((`(,start ,end . ,target) mention)
               (string (contexture-mention--reading-string (contexture-mention--sought-reading sought)))
               (known (contexture-mention--sought-known sought))
               (items (contexture-mention--sought-items sought))
               (text (substring-no-properties string start end)))
    (cl-incf (contexture-mention--sought-number sought))
    (pcase (or (contexture-mention--chosen string start text items)
               (gethash target known)
               (puthash target
                        (or (if (> (- (float-time) (contexture-mention--sought-time sought))
                                   contexture-mention--most-seconds)
                                "is one of too many mentions, so it is only text"
                              (contexture-mention--meaning target items))
                            'held)
                        known))
      ('unknown (cl-pushnew text (contexture-mention--sought-unknown sought) :test #'equal))
      ((and (pred stringp) remark)
       (cl-pushnew (concat text " " remark) (contexture-mention--sought-remarks sought)
                   :test #'equal))
      ((and (pred consp) call)
       (cl-pushnew call (contexture-mention--sought-calls sought) :test #'equal)))))

(defun contexture-mention--chosen (string start mention items)
  "Return the call for MENTION, at START of STRING, if completion chose it.
Return nil if ITEMS have its definition."
  (let ((name (substring mention 1)))
    (and (equal (get-text-property (1+ start) 'contexture-mention string) name)
         (not (contexture-mention--item-named-p name items))
         (get-text-property (1+ start) 'contexture-call string))))

(defun contexture-mention--remarks (unknown remarks)
  "Return phrases for UNKNOWN and REMARKS of `contexture-mention--meanings'."
  (append remarks (contexture-mention--unknown-text unknown)))

(defun contexture-mention--unknown-text (mentions)
  "Return a list of one phrase about MENTIONS, which match nothing, or nil.
Each is named once in this buffer."
  (when-let* ((new (cl-remove-if (lambda (mention)
                                   (member mention contexture-mention--told))
                                 mentions)))
    (setq contexture-mention--told (append new contexture-mention--told))
    (list (format "no file and no symbol known here matches %s; %s only text"
                  (contexture-mention--any-of new)
                  (if (cdr new) "they are" "it is")))))

(defun contexture-mention--any-of (names)
  "Return a phrase for one of NAMES, a list."
  (concat (and (cdr names) (concat (string-join (butlast names) ", ") " or "))
          (car (last names))))

;;;; What a mention means

(defun contexture-mention--there-p (file)
  "Return non-nil if FILE is on this buffer's machine, which is connected.
The machine has listed it as one of the project's files."
  (when-let* ((root (contexture-mention--root))
              ((and (contexture--remote-p root) (string-prefix-p root file)))
              ((file-remote-p root nil t)))
    (contexture-mention--file-target (substring file (length root)) root)))

(defun contexture-mention--meaning (target items)
  "Return what TARGET, (KIND NAME . LINES) of a mention, adds to ITEMS.
That is a call (METHOD . PARAMS), nil if there is nothing to add,
`unknown' if nothing matches, or a text that says why nothing is added."
  (pcase target
    (`(file ,file . ,lines)
     (cond ((and (contexture--remote-p file) (not (contexture-mention--there-p file)))
            "is on another machine; M-x contexture-add-file adds it")
           ((not (or (contexture--remote-p file)
                     (and (contexture--outside-file file) (file-exists-p file))))
            (if-let* ((other (contexture-mention--in-other-case file)))
                (contexture-mention--meaning `(file ,other ,@lines) items)
              'unknown))
           ((contexture-mention--held-p file lines items) nil)
           ;; A link in the project may lead elsewhere.
           ((or (string-prefix-p (contexture-mention--root) file)
                (string-prefix-p contexture-mention--pictures file))
            (condition-case refusal
                (contexture--asked-call (apply #'contexture--file-call file lines))
              (user-error
               (if (contexture--secret-file-p file) "may hold secrets, so it is not added"
                 (cadr refusal)))))
           (t "is outside of the project; /add adds it")))
    (`(directory ,_) "is a folder; /add adds its files")
    (`(symbol ,name) (contexture-mention--meaning-of-name name items))))

(defun contexture-mention--in-other-case (file)
  "Return the one file of the project that FILE names in other letters, or nil."
  (let* ((root (contexture-mention--root))
         (found (and (string-prefix-p root file)
                     (contexture-mention--files-named (string-remove-prefix root file) t))))
    (and found (null (cdr found)) (contexture-mention--listed (car found) root))))

(defun contexture-mention--held-p (file lines items)
  "Return non-nil if one of ITEMS is FILE as a whole, or has its LINES."
  (cl-some (lambda (item)
             (let ((metadata (plist-get item :metadata)))
               (and (equal file (plist-get metadata :filename))
                    (contexture-mention--named-p metadata)
                    (pcase (list (plist-get metadata :start-line)
                                 (plist-get metadata :end-line))
                      (`(nil ,_) t)
                      (`(,start ,end) (and lines (<= start (car lines))
                                           (>= (or end start) (cadr lines))))))))
           items))

(defun contexture-mention--meaning-of-name (name items)
  "Return what NAME, which is no path from the root, adds to ITEMS.
It may be the end of a file's name, or a symbol.  See
`contexture-mention--meaning' for the value."
  (pcase-let* ((`(,bare . ,lines) (contexture-mention--split-lines name))
               (definitions (unless lines (contexture-mention--definitions name)))
               (files (or (contexture-mention--files-named bare)
                          (unless definitions (contexture-mention--files-named bare t))))
               (places (append files (mapcar #'contexture-symbol--place definitions))))
    (cond ((contexture-mention--item-named-p name items) nil)
          ((cdr places)
           (format "may be %s, so it is only text" (string-join (sort places #'string<) " or ")))
          (files (if-let* ((file (contexture-mention--listed
                                  (car files) (contexture-mention--root))))
                     (contexture-mention--meaning `(file ,file ,@lines) items)
                   'unknown))
          (definitions
           (cons 'add-item (contexture-symbol--capture
                            name (contexture-symbol--marker (car definitions)))))
          (t 'unknown))))

(defun contexture-mention--item-named-p (name items)
  "Return non-nil if NAME is the symbol of one of ITEMS, as of a definition."
  (cl-some (lambda (item) (equal name (plist-get (plist-get item :metadata) :symbol)))
           items))

(defun contexture-mention--files-named (name &optional in-any-case)
  "Return the listed files of the project whose paths end in NAME.
IN-ANY-CASE, its letters may be large or small."
  (when-let* ((list (contexture-mention--files)))
    (cl-loop for file in (contexture-files--list-names list)
             for before = (- (length file) (length name))
             when (and (or (= before 0) (and (> before 0) (eq ?/ (aref file (1- before)))))
                       (string-suffix-p name file in-any-case))
             collect file)))

(defun contexture-mention--files ()
  "Return the list of the files of the project or folder of this buffer, or nil."
  (contexture-files--of (contexture-mention--root) (not (contexture-mention--project-p))))

(defun contexture-mention--definitions (name)
  "Return an xref item for each definition of the symbol NAME that is known here."
  (or (and (member name (contexture-mention--tags))
           (contexture-symbol--xref-items name))
      (contexture-symbol--in-buffers name)))

;;; Questions in the minibuffer

(defun contexture-mention--ask (prompt history)
  "Read a question with PROMPT, and complete what follows an `@' in it.
HISTORY is the variable of the minibuffer's history.  What the question
mentions goes with it when a conversation sends it."
  (minibuffer-with-setup-hook (lambda ()
                                (contexture-mention-mode)
                                (setq contexture-mention--for-question t))
    (read-string prompt nil history)))

(provide 'contexture-mention)
;;; contexture-mention.el ends here
