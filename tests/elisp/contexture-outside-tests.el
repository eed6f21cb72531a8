;;; contexture-outside-tests.el --- Tests of names from outside  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Some hundred hostile names of files are drawn, listed, completed, imported,
;; compiled, proposed and visited while every file-name handler and every
;; start of a program or a connection is a failure that is recorded.  And
;; the sources are searched for functions that look at files whose names do
;; not come from the one place that makes such names harmless.

;;; Code:

(require 'contexture-map)
(require 'contexture-conversation-test-helper)
(require 'contexture-agents)
(require 'contexture-dashboard)
(require 'contexture-doctor)
(require 'contexture-lisp)
(require 'contexture-mention)
(require 'contexture-conversations)
(require 'contexture-sessions)
(require 'contexture-sources)
(require 'contexture-tools)
(require 'contexture-tools-test-helper)
(require 'compile)
(require 'diff-mode)
(require 'org)
(require 'xref)
(require 'tramp)
(require 'tramp-archive)
(require 'vc)
(require 'vc-git)

;;; Names

(defun contexture-outside-tests--told (file kind)
  "Return the names in FILE, which the tests of the server read, too, of KIND."
  (with-temp-buffer
    (insert-file-contents (expand-file-name (concat "tests/outside/" file) contexture-test-root))
    (cl-loop for line in (split-string (buffer-string) "\n" t)
             for (which . rest) = (split-string line " ")
             when (equal which kind) collect (string-join rest " "))))

(defconst contexture-outside-tests--connected
  '("/ssh:u@localhost:/x.y" "/ssh:$(touch${IFS}X)@localhost:/x.y" "/sudo::/x.y" "/su:root@h:~/x"
    "/-:h:x" "/scp:[::1]#22:/x" "/ssh:a|sudo:b:/x" "/docker:c:/x" "/adb::/x" "/smb:d%u@h#445:/x"
    "/ftp:anonymous@h:/x" "/u@h:/x" "/h:x" "/[ssh/u@h]/x" "/[/h]/x" "/[ssh/$(touch${IFS}X)@h]x"
    "/sshx:`touch${IFS}X`@h:" "/rclone:s:/x" "/method:h:/x.el:12")
  "Names that connect to another machine or user, in each syntax of TRAMP.")

(defconst contexture-outside-tests--others
  (append
   '("~root/x" "~nobody" "~nosuch/../x" "~/../../../ssh:h:/x" "~" "$HOME/x" "${HOME}/../x"
     "$(touch${IFS}X)" "`touch X`" "%APPDATA%\\x" "a.tar/x" "../a.zip/b" "a.el.gz" "a.el.gz:1"
     "a.gpg" "a.gpg~" "a.7z" "a.7z/x" "a.tar" "a.tar/" "a.zip" "/tmp/a.tar.gz/x" "a.tbz2" "a.xz"
     "/dev/tty" "/dev/stdin" "/dev/fd/0" "/proc/self/fd/0" "/proc/self/environ" "/sys/x"
     "/net/host.invalid/x" "/afs/host.invalid/x" "pipe" "pipe:1" "./pipe" "far" "far:1" "device"
     "around/x" "around/around/pipe" "C:\\x" "c:/x" "\\\\host\\share\\x" "//host/share/x" "CON" "nul:"
     "file:///ssh:h:/x" "file://localhost/ssh:h:/x" "file:///etc/../ssh:h:/x" "file:x" "/" "." ".."
     "/..//../ssh:h:" "" " " "a\0b" "a\nb" "a\eb" "a\rb" "a\u202eb" "a\u200bb" "\u2066/ssh:h:/x"
     "/ssh:h:/a\nb" "/ssh\u200b:h:/x" "-rf" "--upload-pack=touch X" "a.el|touch X" "a;touch X"
     "/:/ssh:h:/x" "/:a" "/:~root" "./:/x" "/ssh:h:/../../x" "/a/../ssh:h:/x#L3")
   (list (make-string 9000 ?a) (concat (apply #'concat (make-list 900 "../")) "ssh:h:/x")
         (apply #'concat (make-list 2000 "a/"))))
  "Names that are hostile in other ways, or only look so.")

(defconst contexture-outside-tests--names
  (let ((bare (mapcar (lambda (name) (substring name 1)) contexture-outside-tests--connected)))
    (delete-dups
     (append
      contexture-outside-tests--connected
      contexture-outside-tests--others
      (cl-loop for name in bare
               append (cl-loop for depth in '(1 2 3 4 5 6 7 9 12 20)
                               collect (concat (apply #'concat (make-list depth "../")) name)))
      (cl-loop for name in bare
               append (cl-loop for before in '("/../" "/tmp/../" "//" "/./" "x/../../../../../../../"
                                               "~/../../../../../" "/:/" "/tmp//../..//" "/a/b/../../"
                                               "src/../../../../../../../../" "file:///" "file:///../")
                               collect (concat before name)))
      (cl-loop for name in bare for line from 1
               append (list (format "../../../../../../%s:%d" name line)
                            (format "/%s#L%d" name line))))))
  "Hostile names of files.")

;;; The trap

(defvar contexture-outside-tests--caught nil
  "What was called that must not be, each as (WHAT . ARGUMENTS).")

(defun contexture-outside-tests--catcher (what)
  "Return a function that records a call of WHAT, and fails."
  (lambda (&rest arguments)
    (push (cons what arguments) contexture-outside-tests--caught)
    (error "%s was called" what)))

(defun contexture-outside-tests--handlers ()
  "Return `file-name-handler-alist' with handlers that record their calls.
Those that only complete names may be called: they do not connect."
  (cl-loop for (regexp . handler) in file-name-handler-alist
           for operations = (get handler 'operations)
           for trap = (make-symbol (format "%s" handler))
           do (fset trap (contexture-outside-tests--catcher handler))
           (put trap 'operations operations)
           if (or (null operations)
                  (cl-set-difference operations contexture-outside--of-names))
           collect (cons regexp trap)
           else collect (cons regexp handler)))

(defconst contexture-outside-tests--starters
  '(tramp-maybe-open-connection make-process call-process call-process-region start-process
    start-file-process process-file make-network-process open-network-stream shell-command
    tramp-file-name-handler tramp-archive-file-name-handler)
  "Functions that start a program or a connection.")

(defvar contexture-outside-tests--armed nil
  "Non-nil while no program may be started.")

(dolist (name contexture-outside-tests--starters)
  (advice-add name :around
              (lambda (function &rest arguments)
                (if contexture-outside-tests--armed
                    (apply (contexture-outside-tests--catcher name) arguments)
                  (apply function arguments)))
              '((name . contexture-outside-tests))))

(defmacro contexture-outside-tests--trapped (&rest body)
  "Run BODY, and return what it called that it must not call."
  (declare (indent 0) (debug t))
  `(let ((contexture-outside-tests--caught nil)
         (file-name-handler-alist (contexture-outside-tests--handlers)))
     (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) nil))
               ((symbol-function 'yes-or-no-p) (lambda (&rest _) nil)))
       (let ((contexture-outside-tests--armed t))
         ,@body))
     (reverse contexture-outside-tests--caught)))

(defun contexture-outside-tests--in-project (function)
  "Call FUNCTION in a project with files of all kinds."
  (contexture-test-in-directory
   (lambda ()
     (make-directory ".git")
     (make-directory "src")
     (contexture-test-file "src/a.el" "(defun a ())")
     (dolist (name '("a.el.gz" "a.gpg" "a.7z" "a.tar" "a.zip" "a.tbz2" "a.xz" "ssh:h:"))
       (let (file-name-handler-alist) (contexture-test-file name "x")))
     (call-process "mkfifo" nil nil nil "pipe")
     (project-current)                  ; which loads version control
     (let (file-name-handler-alist)
       (make-symbolic-link "/ssh:u@localhost:/x" "far")
       (make-symbolic-link "/dev/tty" "device")
       (make-symbolic-link "." "around"))
     (funcall function))))

;;; Ways to a file

(defun contexture-outside-tests--drawn (name)
  "Draw an answer with NAME, as code, as a link and in code; follow its links."
  (with-temp-buffer
    (let ((state (contexture-markdown--begin nil)))
      (contexture-markdown--insert
       state (format "See `%s` and [it](%s) and <%s> and %s.\n\n" name name name name))
      (contexture-markdown--insert
       state (format "```diff\n--- %s\n+++ %s\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n```\n" name name))
      (contexture-markdown--insert
       state (format "```org\n#+SETUPFILE: %s\n#+INCLUDE: %s\n[[file:%s]]\n```\n" name name name))
      (contexture-markdown--end state))
    (insert (propertize "x" 'contexture-link name))
    (goto-char (1- (point-max)))
    (contexture-conversation-follow-link)))

(defun contexture-outside-tests--compiled (name)
  "Parse a compiler's output that names NAME, and look for its errors."
  (with-temp-buffer
    (insert (format "make: Entering directory '%s'\n%s:1:2: error: x\na.el:3: y\n\n" name name)
            (format "In file included from %s:4:\n  File \"%s\", line 3, in f\n" name name)
            (format "error: z\n  --> %s:5:6\n" name))
    (compilation-mode)
    (let ((inhibit-read-only t))
      (cl-letf (((symbol-function 'contexture--add) #'ignore))
        (contexture-add-compilation t)
        (goto-char (point-min))
        (while (not (eobp))
          (when (contexture-sources--message-here)
            (contexture-sources--error-params (point)))
          (forward-line))))))

(defun contexture-outside-tests--conversation (name)
  "Open a conversation of a project that an import says is NAME."
  (cl-letf (((symbol-function 'contexture-conversation--request) #'ignore)
            ((symbol-function 'contexture-conversation--ask-providers) #'ignore)
            ((symbol-function 'contexture-conversation--fetch-settings) #'ignore)
            ((symbol-function 'contexture-conversation-redraw) #'ignore))
    (let ((buffer (contexture-conversation--open
                   (list :id (format "s-%d" (random 1000000000)) :session "x" :project name
                         :manager "m"))))
      (unwind-protect
          (with-current-buffer buffer
            (contexture-conversation--root)
            (contexture-conversation--code-buffers)
            (contexture-conversation--trust-changed llm-ert-directory)
            (contexture-trust--project-here)
            (contexture--project-root))
        (kill-buffer buffer)))))

(defun contexture-outside-tests--metadata (name)
  "Return metadata of an item that says it is from the file NAME."
  (list :filename name :project name :start-line 1 :end-line 1 :modified t :mode "org-mode"
        :language "text" :origin :region))

(defun contexture-outside-tests--tool (function name &rest arguments)
  "Call FUNCTION, of a tool, with NAME and ARGUMENTS in the test's project."
  (let ((contexture-tool-project llm-ert-directory))
    (apply function name arguments)))

(defun contexture-outside-tests--typed (name then)
  "Call THEN in a buffer of the project with NAME typed as a mention."
  (with-temp-buffer
    (setq default-directory llm-ert-directory)
    (text-mode)
    (insert "see @\"" name)
    (funcall then)))

(defconst contexture-outside-tests--ways
  `((draw . contexture-outside-tests--drawn)
    (compile . contexture-outside-tests--compiled)
    (conversation . contexture-outside-tests--conversation)
    (describe-item . ,(lambda (name)
                        (let ((metadata (contexture-outside-tests--metadata name)))
                          (contexture--description metadata)
                          (contexture--item-state `(:state :stale :metadata ,metadata :timestamp 0))
                          (contexture--item-state
                           `(:state :fresh :metadata (:unsaved t ,@metadata)))
                          (contexture-list-item--mode metadata)
                          (contexture-conversation--item-name (list :metadata metadata)))))
    (map . ,(lambda (name)
              (with-temp-buffer
                (contexture-map-mode)
                (setq contexture-map--params (list :project default-directory))
                (contexture-map--show (list :project default-directory :files 1 :total-files 1
                                            :tokens 1 :commits 1
                                            :entries (list (list :path name :definitions
                                                                 '((:line 1 :end-line 2))))))
                (cl-letf (((symbol-function 'contexture-add-file) #'ignore))
                  (ignore-errors (contexture-map-visit))
                  (ignore-errors (contexture-map-add))))))
    (show-item . ,(lambda (name)
                    (contexture-list-item--display
                     (list :content (format "--- %s\n+++ %s\n@@ -1,1 +1,1 @@\n-a\n+b\n" name name)
                           :metadata (append '(:mode "diff-mode")
                                             (contexture-outside-tests--metadata name))))))
    (visit-item . ,(lambda (name)
                     ;; Dired shows folders, by a program.
                     (unless (contexture--inertly (file-directory-p (expand-file-name name)))
                       (contexture-list-item--source-buffer
                        (contexture-outside-tests--metadata name)))))
    (code-buffers . ,(lambda (name)
                       (let ((contexture-conversation--items
                              (list (list :metadata (contexture-outside-tests--metadata name)))))
                         (contexture-conversation--code-buffers))))
    (label . ,(lambda (name)
                (contexture--project-label name)
                (contexture--label name)
                (contexture--same-project-p name llm-ert-directory)))
    (agent . ,(lambda (name)
                (contexture-agents--session-name
                 (list :agent "a" :agent-session "i" :project name))))
    (import . ,(lambda (name)
                 (with-temp-buffer
                   (contexture-import--insert
                    (list :state :new :session name :path name :messages 1 :tokens 1)))
                 (contexture-conversation-notes--value :path name)))
    (trust . ,(lambda (name)
                (contexture-trust--show (list name))
                (contexture-trust--finding (list :project name :remote name))))
    (doctor . ,(lambda (name)
                 (contexture-doctor--judge-state (list :backup (list :at 0 :path name)))))
    (unsaved . contexture-live--unsaved)
    (mention . ,(lambda (name)
                  (let ((contexture-mention-action 'add))
                    (dolist (text (list (format "@\"%s\"" name) (concat "@" name)))
                      (pcase-dolist (`(,_ ,_ . ,target) (contexture-mention-in-string
                                                         text llm-ert-directory))
                        (unless (eq (car target) 'symbol)
                          (contexture-mention--meaning target nil)))))))
    (listed . ,(lambda (name)
                 (contexture-mention--listed name llm-ert-directory)))
    (add . ,(lambda (name)
              (cl-letf (((symbol-function 'contexture-add-file) #'ignore)
                        ((symbol-function 'contexture-add-directory) #'ignore)
                        ((symbol-function 'contexture-add-symbol) #'ignore))
                (unless (string-empty-p name)
                  (contexture-conversation--do-add name)))))
    (complete . ,(lambda (name)
                   (contexture-outside-tests--typed
                    name (lambda ()
                           (pcase (contexture-conversation--complete-argument "add" 6)
                             (`(,beg ,end ,table . ,_)
                              (let ((text (buffer-substring beg end)))
                                (try-completion text table)
                                (all-completions text table)
                                (completion-boundaries text table nil ""))))))))
    (lisp-location . ,(lambda (name)
                        (cl-letf (((symbol-function 'contexture-lisp--ask)
                                   (lambda (_client _slot &rest arguments) (car arguments))))
                          (contexture-lisp--location-buffer nil (list :file name))
                          (contexture-lisp--location-buffer
                           nil (list :buffer-and-file name name)))))
    (xref . ,(lambda (name)
               (let ((item (xref-make "x" (xref-make-file-location name 1 0)))
                     (contexture-tool-project llm-ert-directory))
                 (contexture-symbol--place item)
                 (contexture-tools-emacs--name name)
                 (contexture-symbol--marker item))))
    (read-buffer . ,(lambda (name)
                      (contexture-outside-tests--tool
                       #'contexture-tools-emacs--read-buffer name nil nil)))
    (outline . ,(lambda (name)
                  (contexture-outside-tests--tool #'contexture-tools-emacs--outline name)))
    (diagnostics . ,(lambda (name)
                      (contexture-outside-tests--tool #'contexture-tools-emacs--diagnostics name)))
    (propose . ,(lambda (name)
                  ;; A program compares texts.
                  (cl-letf ((before (buffer-list))
                            ((symbol-function 'contexture-review--show) #'ignore))
                    (unwind-protect
                        (contexture-outside-tests--tool
                         (lambda (name)
                           (contexture-tools-change--propose #'ignore name "new" nil nil))
                         name)
                      (dolist (buffer (cl-set-difference (buffer-list) before))
                        (with-current-buffer buffer (set-buffer-modified-p nil))
                        (kill-buffer buffer))))))
    (lisp-compile . ,(lambda (name)
                       (contexture-outside-tests--tool #'contexture-tools-lisp--saved name)))
    (rest . ,(lambda (name)
               ;; What a server says that it left out of a directory, and `+' adds.
               (let ((contexture-tree--release nil) map)
                 (cl-letf (((symbol-function 'set-transient-map) (lambda (it &rest _) (setq map it)))
                           ((symbol-function 'contexture-tree--call) #'ignore))
                   (contexture-tree--offer-rest
                    "m" (list :root llm-ert-directory
                              :skipped (list :named (list (list :path name :reason :hidden)))))
                   (when map (funcall (lookup-key map "+")))))))
    (called . ,(lambda (name)
                 (let ((contexture-tools '(("read_buffer" t) ("read_buffer" agents)))
                       (contexture-tools--calls (make-hash-table)))
                   (dolist (agent '(nil "agent"))
                     (contexture-tools--called
                      (list :call 1 :tool "read_buffer" :project name :agent agent
                            :arguments (json-encode (list :file name)))))
                   (let ((call (gethash 1 contexture-tools--calls)))
                     (contexture-tools--outcome call)
                     (contexture-tools--question call))))))
  "What Emacs does with names from outside: a name for it, and the function.")

(ert-deftest contexture-outside-knows-many-names ()
  (should (> (length contexture-outside-tests--names) 500)))

(ert-deftest contexture-outside-names-are-inert ()
  ;; Each way meets other names, and each name meets several ways.
  (let ((inhibit-message t) (message-log-max nil)
        (every (contexture-test-rounds 5 1)) (ways 0)
        ;; The list of the project's files is made once, by a program.
        (contexture-files--fresh most-positive-fixnum))
    (contexture-outside-tests--in-project
     (lambda ()
       (let ((here default-directory)
             ;; The names of the project's files are known, whatever is mentioned.
             (contexture-files--fresh 1.0e+INF)
             (list (contexture-files--of (contexture-mention--root) nil)))
         (llm-ert-wait-for (contexture-files--list-done list))
         (pcase-dolist (`(,way . ,function) contexture-outside-tests--ways)
           (setq ways (1+ ways))
           (cl-loop
            for name in (nthcdr (mod ways every) contexture-outside-tests--names)
            by (lambda (names) (nthcdr every names))
            do
            (let ((caught (contexture-outside-tests--trapped
                            (let ((default-directory here))
                              (save-current-buffer
                                (condition-case nil (funcall function name)
                                  ((error quit) nil)))))))
              (should (equal (list way name nil) (list way name caught)))))
           (when (get-buffer contexture-list--item-buffer)
             (kill-buffer contexture-list--item-buffer))))))))

;; The handler by which Tramp completes takes the root and all that is right in it.
(ert-deftest contexture-outside-names-of-this-machine-are-taken-with-tramp ()
  (should (rassq 'tramp-completion-file-name-handler file-name-handler-alist))
  (dolist (folder (list "/" "/tmp" (expand-file-name contexture-test-root)))
    (ert-info (folder)
      (should (equal (contexture--outside-folder folder) (file-name-as-directory folder))))))

(ert-deftest contexture-outside-names-in-the-list-are-inert ()
  (contexture-test-with-server
    (make-directory ".git")
    (contexture-request 'configure-manager '(:manager "m" :max-items 1000))
    (dolist (name contexture-outside-tests--names)
      (ignore-errors
        (contexture-request 'add-item (list :manager "m" :content "x" :type :code
                                            :metadata (list :filename name :start-line 1
                                                            :end-line 1 :modified t
                                                            :project name)))))
    (contexture-current-connection)
    (should (equal (contexture-outside-tests--trapped
                     (save-window-excursion
                       (contexture-list "m")
                       (with-current-buffer contexture-list-buffer
                         (llm-ert-wait-for contexture-list--items)
                         (llm-ert-wait-for (nthcdr 300 contexture-list--items))
                         (dolist (item contexture-list--items)
                           (ignore-errors
                             (funcall (alist-get 'visit-item contexture-outside-tests--ways)
                                      (plist-get (plist-get item :metadata) :filename)))))))
                   nil))))

;;; The sources

(defconst contexture-outside-tests--primitives
  '(file-exists-p file-regular-p file-directory-p file-readable-p file-writable-p file-executable-p
    file-accessible-directory-p file-symlink-p file-attributes file-modes file-truename
    file-equal-p file-in-directory-p file-newer-than-file-p directory-files
    directory-files-recursively file-name-all-completions completion-file-name-table
    locate-dominating-file find-file find-file-other-window find-file-noselect
    find-buffer-visiting get-file-buffer insert-file-contents insert-file-contents-literally
    file-local-copy write-region load load-file copy-file rename-file delete-file make-directory
    delete-directory set-file-modes make-process call-process call-process-region start-process
    start-file-process process-file shell-command expand-file-name file-name-directory
    file-name-nondirectory file-name-as-directory directory-file-name file-relative-name
    file-remote-p file-local-name abbreviate-file-name project-current project-files vc-backend vc-responsible-backend
    substitute-in-file-name)
  "Functions that a file-name handler can take over, or that start a program.")

(defun contexture-outside-tests--uses (form)
  "Return the primitives that FORM calls or quotes, but not in `contexture--inertly'."
  (let (found)
    (cl-labels
        ((walk (form)
           (cond ((not (consp form))
                  (when (vectorp form) (mapc #'walk form)))
                 ((memq (car form) '(contexture--inertly declare-function)))
                 ((and (memq (car form) '(function quote pred)) (consp (cdr form))
                       (symbolp (cadr form)))
                  (when (memq (cadr form) contexture-outside-tests--primitives)
                    (cl-pushnew (cadr form) found)))
                 (t (when (memq (car form) contexture-outside-tests--primitives)
                      (cl-pushnew (car form) found))
                    (while (consp form)
                      (walk (pop form)))
                    (when form (walk form))))))
      (walk form))
    (sort found #'string<)))

(defun contexture-outside-tests--asks-p (form)
  "Return non-nil if FORM calls the one place that makes a file of a name."
  (and (consp form)
       (or (memq (car form) '(contexture--outside-file contexture--outside-folder))
           (cl-loop while (consp form)
                    thereis (contexture-outside-tests--asks-p (pop form))))))

(defun contexture-outside-tests--definitions ()
  "Return an alist from the package's definitions to the primitives that they use.
Those that take their names from the one place are left out."
  (cl-loop
   for file in (directory-files (expand-file-name "elisp" contexture-test-root) t
                                "\\`contexture[^.]*\\.el\\'")
   ;; These are for tests.
   unless (string-match-p "/contexture-ert" file)
   append (with-temp-buffer
            (insert-file-contents file)
            (goto-char (point-min))
            (cl-loop for form = (condition-case nil (read (current-buffer)) (end-of-file nil))
                     while form
                     for uses = (contexture-outside-tests--uses form)
                     when (and uses (not (contexture-outside-tests--asks-p form)))
                     collect (cons (let ((name (car-safe (cdr-safe form))))
                                     (if (eq (car-safe name) 'quote) (cadr name)
                                       (or (car-safe name) name)))
                                   uses)))))

(defconst contexture-outside-tests--allowed
  '(
    (own
     "Files and programs of this package, which options or this package name."
     (contexture-dashboard-browse make-process)
     (contexture-review--compare call-process-region delete-file write-region)
     (contexture--installed-server expand-file-name)
     (contexture-install--start file-name-directory make-directory make-process)
     (contexture-install--fetched set-file-modes)
     (contexture-install--checksum insert-file-contents-literally)
     (contexture-install--fail delete-file)
     (contexture-install--put rename-file)
     (contexture-install--offer-cargo expand-file-name)
     (contexture-conversation--file-contents file-readable-p insert-file-contents)
     (contexture-conversation--merge-and-write delete-file expand-file-name rename-file write-region)
     (contexture--directory file-name-directory)
     (contexture--server-command expand-file-name)
     (contexture--server-in expand-file-name)
     (contexture--find-server file-executable-p)
     (contexture--open make-process)
     (contexture--unbroken file-executable-p)
     (contexture--secret expand-file-name file-readable-p insert-file-contents)
     (contexture--usual-state-folder expand-file-name)
     (contexture--server-note expand-file-name file-readable-p insert-file-contents)
     (contexture--probe-program make-process)
     (contexture-dashboard-browse make-process)
     (contexture-tools-lisp--source expand-file-name file-name-directory)
     (contexture-tools-lisp--code insert-file-contents)
     (contexture-doctor--no-program file-directory-p file-exists-p)
     (contexture-doctor--judge-folder expand-file-name file-accessible-directory-p file-attributes file-directory-p file-modes file-writable-p)
     (contexture-doctor--judge-socket file-attributes file-readable-p file-writable-p)
     (contexture-doctor--readable directory-file-name expand-file-name)
     (contexture-setup--run call-process expand-file-name)
     (contexture-files--git locate-dominating-file)
     (contexture-files--start make-process)
     (contexture--git expand-file-name)
     (contexture-tools-emacs--git locate-dominating-file)
     (contexture-tools-emacs--lines make-process)
     (contexture-symbol--grep expand-file-name make-process)
     ;; A host that the user typed, after an option that ends the options.
     (contexture-mention--pictures expand-file-name)
     (contexture-picture--save expand-file-name file-exists-p make-directory)
     (contexture-sync make-process)
     (contexture-sync--hosts expand-file-name file-readable-p insert-file-contents))
    (user
     "Names that the user typed, chose or set."
     (contexture-point--files file-regular-p)
     (contexture-provider--read-script expand-file-name file-regular-p)
     (contexture-trust--trust directory-file-name expand-file-name)
     (contexture--parse-address expand-file-name)
     (contexture-conversation-export file-exists-p write-region)
     (contexture-import--project expand-file-name)
     (contexture-import--places directory-file-name expand-file-name file-directory-p)
     (contexture-import--read file-directory-p file-name-as-directory file-name-directory)
     (contexture-import-sessions expand-file-name file-directory-p file-readable-p file-regular-p insert-file-contents)
     (contexture-import--params directory-file-name expand-file-name)
     (contexture-sources--add-dired file-directory-p)
     (contexture-point--diary file-readable-p)
     (contexture-tree--add-files expand-file-name)
     (contexture--decoded-call file-attributes find-buffer-visiting)
     (contexture-add-directory expand-file-name file-directory-p file-name-as-directory)
     (contexture-tools--folders expand-file-name)
     (contexture-tools--onp file-name-as-directory)
     (contexture-add-file file-name-nondirectory)
     (contexture--file-call expand-file-name file-directory-p file-name-directory find-buffer-visiting)
     (contexture-mention--begin-reading expand-file-name file-name-as-directory))
    (emacs
     "Names of the files of open buffers and of their folders and projects."
     (contexture-map--task expand-file-name)
     (contexture-map--buffers expand-file-name)
     (contexture-point--commit locate-dominating-file)
     (contexture--ask-machine file-remote-p process-file)
     (contexture--ask-remote-root file-name-as-directory file-remote-p)
     (contexture--connected-folder file-remote-p)
     (contexture-sync--host file-remote-p)
     (contexture-tree--fetch-some file-remote-p)
     (contexture-sources--diff expand-file-name file-local-name file-name-as-directory locate-dominating-file)
     (contexture-sources--git file-local-name make-process process-file)
     (contexture-sources--git-knows file-local-name)
     (contexture-sources--submodules file-name-as-directory)
     (contexture-sources--backend locate-dominating-file vc-backend)
     (contexture--remote-root file-remote-p)
     (contexture-lisp--tell-directory expand-file-name)
     (contexture-sets--here-p expand-file-name)
     (contexture-live--track expand-file-name)
     (contexture-live--names expand-file-name)
     (contexture-live--file-text insert-file-contents)
     (contexture-live--held-p insert-file-contents)
     (contexture-live--renamed expand-file-name)
     (contexture-live--gone-p file-exists-p)
     (contexture-live--unsaved expand-file-name)
     (contexture--manual-folder expand-file-name file-name-directory file-readable-p)
     (contexture-files--of file-remote-p)
     (contexture-mention--there-p file-remote-p)
     (contexture-mention--root expand-file-name file-name-as-directory)
     (contexture-mention--tags get-file-buffer)
     (contexture-sources--diff-of-file expand-file-name)
     (contexture-sources--diff-of-project expand-file-name file-name-as-directory vc-responsible-backend)
     (contexture-tree--unsaved expand-file-name)
     (contexture-tools-emacs--buffers expand-file-name file-name-as-directory file-truename)
     (contexture-tools-emacs--buffer expand-file-name)
     (contexture-tools-emacs--compilation file-in-directory-p)
     (contexture-tools-change--point-out file-relative-name)
     (contexture-tools-change--compilers expand-file-name file-exists-p)
     (contexture-tools-change--result file-name-as-directory)
     (contexture--place-params expand-file-name file-name-directory)
     (contexture--project project-current)
     (contexture--readable-git-p file-in-directory-p locate-dominating-file)
     (contexture--project-root expand-file-name)
     (contexture--project-buffers file-in-directory-p)
     (contexture--buffer-metadata expand-file-name))
    (checked
     "Names that the caller took from `contexture--outside-file'."
     (contexture-conversation-follow-link find-file-other-window)
     (contexture-picture--name abbreviate-file-name expand-file-name file-in-directory-p)
     (contexture-tools-change--buffer find-buffer-visiting)
     (contexture-tools-change--file file-relative-name file-truename)
     (contexture-tools-change--named file-exists-p)
     (contexture-tools-change--open file-attributes file-directory-p file-exists-p file-name-directory file-regular-p)
     (contexture-tools-lisp--saved file-readable-p find-buffer-visiting)
     (contexture--insert-file insert-file-contents)
     (contexture--visit-quietly file-exists-p file-readable-p file-regular-p find-buffer-visiting find-file-noselect))
    )
  "Definitions that use primitives on other names, with the reason.
Each is (NAME . PRIMITIVES).")

(ert-deftest contexture-outside-names-come-from-one-place ()
  (let* ((found (contexture-outside-tests--definitions))
         (allowed (apply #'append (mapcar #'cddr contexture-outside-tests--allowed))))
    (should (> (length found) 50))
    ;; Whoever looks at a file in a new place takes the name from
    ;; `contexture--outside-file', or says above why it cannot be from outside.
    (should (equal (cl-set-difference found allowed :test #'equal) nil))
    (should (equal (cl-set-difference allowed found :test #'equal) nil))))

(ert-deftest contexture-outside-search-of-the-sources-sees-all-uses ()
  (pcase-dolist (`(,form . ,uses)
                 '(((lambda (x) (file-exists-p x)) file-exists-p)
                   ((mapcar #'file-directory-p x) file-directory-p)
                   ((let ((x `(,@(directory-files y)))) x) directory-files)
                   ((contexture--inertly (expand-file-name x)))
                   ((mapcar 'file-exists-p x) file-exists-p)
                   ((pcase x ((pred file-exists-p) 1)) file-exists-p)))
    (should (equal (contexture-outside-tests--uses form) uses))))

;;; What the server knows, too

(ert-deftest contexture-outside-remote-names-are-those-of-the-server ()
  (let ((remote (contexture-outside-tests--told "remote-names.txt" "remote"))
        (local (contexture-outside-tests--told "remote-names.txt" "local"))
        (before tramp-syntax))
    (should (and (nthcdr 10 remote) (nthcdr 10 local)))
    (dolist (name remote)
      (should-not (contexture--outside-file name "/")))
    (dolist (name local)
      (should-not (contexture--remote-p (contexture--inertly (expand-file-name name "/")))))
    (unwind-protect
        (dolist (syntax '(default simplified separate))
          (tramp-change-syntax syntax)
          (dolist (name (append local remote contexture-outside-tests--names))
            (let ((file (and (not (string-search "\0" name))
                             (contexture--inertly (expand-file-name name "/")))))
              (when (and file (not (string-prefix-p "/:" file))
                         (string-match-p tramp-file-name-regexp file))
                (should (equal (list syntax name (not (contexture--remote-p file)))
                               (list syntax name nil)))))))
      (tramp-change-syntax before))))

(ert-deftest contexture-outside-secret-names-are-those-of-the-server ()
  (dolist (name (contexture-outside-tests--told "secret-names.txt" "secret"))
    (should (equal (list name (and (contexture--secret-file-p name) t)) (list name t))))
  (dolist (name (contexture-outside-tests--told "secret-names.txt" "open"))
    (should (equal (list name (contexture--secret-file-p name)) (list name nil)))))

;;; Repositories

(defun contexture-outside-tests--git (&rest arguments)
  "Run Git with ARGUMENTS, undisturbed by the repository; return its output."
  (with-temp-buffer
    (should (eq 0 (apply #'call-process "git" nil '(t nil) nil
                         "-c" "user.name=a" "-c" "user.email=a@b" "-c" "core.fsmonitor=" arguments)))
    (string-trim (buffer-string))))

(defun contexture-outside-tests--set-trap (script)
  "Let each setting of this repository that can name a program name SCRIPT."
  (write-region "* filter=evil diff=evil\n" nil ".gitattributes" nil 'silent)
  (with-temp-buffer
    (insert (format "[core]\n\tfsmonitor = %s\n\thooksPath = %s\n\tpager = %s\n"
                    script (file-name-directory script) script)
            (format "[filter \"evil\"]\n\tclean = %s\n\tsmudge = %s\n\tprocess = %s\n\trequired\n"
                    script script script)
            (format "[diff]\n\texternal = %s\n\tsubmodule = diff\n[diff \"evil\"]\n\ttextconv = %s\n\tcommand = %s\n"
                    script script script)
            "[diff]\n\torderFile = /dev/zero\n[mailmap]\n\tfile = /dev/zero\n[log]\n\tmailmap = true\n"
            (format "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = %s\n" script)
            (format "[remote \"o\"]\n\turl = %s\n\tuploadpack = %s\n\tpromisor = true\n"
                    (expand-file-name "../elsewhere") script)
            "[submodule]\n\trecurse = true\n[submodule \"sub\"]\n\tactive\n\tignore = none\n"
            "[protocol \"file\"]\n\tallow = always\n")
    (append-to-file nil nil ".git/config")))

(defun contexture-outside-tests--sign ()
  "Make a commit with a signature of the last one's files; return its name."
  (let ((file (contexture-test-file
               ".git/commit" (concat "tree " (contexture-outside-tests--git "rev-parse" "HEAD^{tree}"))
               "author a <a@b> 1 +0000" "committer a <a@b> 1 +0000"
               "gpgsig -----BEGIN PGP SIGNATURE-----" " " " abc" " -----END PGP SIGNATURE-----"
               "" "signed")))
    (contexture-outside-tests--git "hash-object" "-t" "commit" "-w" file)))

(defun contexture-outside-tests--differences (target)
  "Return what is told of the differences of TARGET from its last commit."
  (let (told)
    (contexture-sources--diff 'Git target (lambda (text) (setq told (list text))))
    (llm-ert-wait-for told)
    (car told)))

(ert-deftest contexture-outside-repositories-run-nothing ()
  (skip-unless (executable-find "git"))
  (contexture-test-in-directory
   (lambda ()
     (make-directory "elsewhere")
     (contexture-test-file "elsewhere/key" "hush")
     (make-directory "r/sub" t)
     (let* ((default-directory (expand-file-name "r/"))
            (llm-ert-directory default-directory)
            (trace (expand-file-name "../trace"))
            (script (expand-file-name "../script"))
            (contexture-tool-project default-directory)
            commit)
       (write-region (format "#!/bin/sh\necho ran >> %s\n" trace) nil script nil 'silent)
       (set-file-modes script #o755)
       (dolist (folder '("sub" "."))
         (let ((default-directory (file-name-as-directory (expand-file-name folder))))
           (write-region "hush one\n" nil "a.txt" nil 'silent)
           (write-region "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n" nil ".gitmodules" nil 'silent)
           (dolist (arguments '(("init" "-q") ("add" ".") ("commit" "-qm" "x")))
             (apply #'contexture-outside-tests--git arguments))
           (setq commit (contexture-outside-tests--sign))
           (write-region "hush two\n" nil "a.txt" nil 'silent)
           (contexture-outside-tests--set-trap script)))
       (with-temp-buffer
         (insert (format "[core]\n\tworktree = %s\n" (expand-file-name "../elsewhere")))
         (append-to-file nil nil ".git/config"))
       (let ((found (contexture-tools-test-seen-later #'contexture-tools-emacs--search "hush")))
         (should (string-match-p "a.txt:1:hush two" found))
         (should-not (string-match-p "key" found)))
       (let ((names (contexture-tools-test-seen-later #'contexture-tools-emacs--files)))
         (should (string-match-p "a.txt" names))
         (should-not (string-match-p "key" names)))
       (let ((list (contexture-files--of default-directory nil)))
         (llm-ert-wait-for (contexture-files--list-done list))
         (should (member "sub/a.txt" (contexture-files--list-names list))))
       (dolist (target (list (expand-file-name "a.txt") default-directory))
         (let ((text (contexture-outside-tests--differences target)))
           (should (string-match-p "^\\+hush two" text))
           (should (equal (list target (and (string-match-p "^\\+\\+\\+ b/sub/a.txt" text) t))
                          (list target (equal target default-directory))))))
       (let (read)
         (contexture-point-with (list (contexture-point--commit commit))
                                (lambda (subjects) (setq read subjects)))
         (llm-ert-wait-for read)
         (should (string-search "hush one" (plist-get (plist-get (car read) :params) :content))))
       (should-not (file-exists-p trace))
       ;; The traps work.
       (dolist (command (list '("--work-tree=." "status") '("--work-tree=sub" "--git-dir=sub/.git" "status")
                              (list "-c" "core.fsmonitor=" "-c" "diff.external=" "-c" "diff.submodule=short"
                                    "-c" "diff.orderFile=/dev/null" "-c" "log.mailmap=false" "show" "--no-ext-diff" "--no-textconv" commit)))
         (apply #'call-process "git" nil nil nil command)
         (should (equal (list command (file-exists-p trace)) (list command t)))
         (delete-file trace))))))

(ert-deftest contexture-outside-filters-run-nothing-whatever-their-names ()
  (skip-unless (executable-find "git"))
  (contexture-test-in-directory
   (lambda ()
     (let ((trace (expand-file-name "trace")) (script (expand-file-name "script")) (number 0))
       (write-region (format "#!/bin/sh\necho ran >> %s\ncat\n" trace) nil script nil 'silent)
       (set-file-modes script #o755)
       (dolist (name '("evil" "Evil" "a=b" "=" "caf\351" "\202\240" "k\303\251" "a.b" "a\\b" "-c" "required"
                       "a.clean" "$(x)"))
         (let* ((default-directory (file-name-as-directory
                                    (expand-file-name (format "r%d" (cl-incf number)))))
                (coding-system-for-write 'binary))
           (make-directory default-directory)
           (write-region "one\n" nil "a.txt" nil 'silent)
           (dolist (arguments '(("init" "-q") ("add" ".") ("commit" "-qm" "x")))
             (apply #'contexture-outside-tests--git arguments))
           (write-region (format "* filter=%s\n" name) nil ".git/info/attributes" nil 'silent)
           (write-region (format "[filter \"%s\"]\n\tclean = %s\n\tprocess = %s\n"
                                 (string-replace "\\" "\\\\" name) script script)
                         nil ".git/config" t 'silent)
           (write-region "two\n" nil "a.txt" nil 'silent)
           (let ((coding-system-for-write nil)
                 (text (contexture-outside-tests--differences default-directory)))
             (should (equal (list name (and (string-match-p "^\\+two\\|cannot be turned off" text) t))
                            (list name t)))
             (should (equal (list name (file-exists-p trace)) (list name nil))))
           ;; The trap works.
           (let ((coding-system-for-write nil))
             (call-process "git" nil nil nil "diff" "HEAD"))
           (should (equal (list name (file-exists-p trace)) (list name t)))
           (delete-file trace)))))))

(ert-deftest contexture-outside-pipes-of-a-repository-hold-nobody ()
  "Emacs waits for nothing that Git waits for, and Git is ended in time."
  (skip-unless (and (executable-find "git") (executable-find "mkfifo")))
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((number 0) (contexture--git-seconds 0.2) (contexture-files--lists (make-hash-table :test #'equal)))
      (dolist (name '(".git/config" ".git/HEAD" ".git/index" ".git/packed-refs" ".git/commondir"
                      ".git/info/exclude" ".git/info/attributes" ".git/objects/info/alternates"
                      ".git/shallow" ".gitattributes" ".gitignore" ".gitmodules"))
        (let* ((default-directory (file-name-as-directory
                                   (expand-file-name (format "r%d" (cl-incf number)))))
               (contexture-tool-project default-directory)
               (vc-handled-backends nil)
               (before (process-list))
               commit)
          (make-directory default-directory)
          (write-region "(defun f () 1)\n" nil "a.el" nil 'silent)
          (dolist (arguments '(("init" "-q") ("add" ".") ("commit" "-qm" "x")))
            (apply #'contexture-outside-tests--git arguments))
          (setq commit (contexture-outside-tests--git "rev-parse" "HEAD"))
          (write-region "(defun f () 2)\n" nil "a.el" nil 'silent)
          (ignore-errors (delete-file name))
          (call-process "mkfifo" nil nil nil name)
          (contexture-test-visiting (expand-file-name "a.el")
            (contexture-adding-context)
            (let ((vc-handled-backends '(Git)) said)
              (dolist (way (list #'contexture-add-diff
                                 (lambda () (contexture-add-diff t))
                                 (lambda () (contexture-files--of default-directory nil))
                                 (lambda ()
                                   (contexture-point-with
                                    (list (contexture-point--commit commit)) #'ignore))
                                 (lambda () (contexture-tools-emacs--search #'ignore "f"))
                                 (lambda () (contexture-tools-emacs--files #'ignore))))
                (contexture-test-at-once (funcall way)))
              ;; This waits for the names of the files, as long as Git may.
              (setq said (contexture-symbol--in-project "f"))
              (should (equal (list name (and said t)) (list name t))))
            (llm-ert-wait-for (null (cl-set-difference (process-list) before)))))))))

(ert-deftest contexture-outside-folders-evaluate-nothing ()
  "Whoever looks for a project evaluates nothing that its folder says."
  (skip-unless (executable-find "git"))
  (contexture-test-in-directory
   (lambda ()
     (let ((trace (expand-file-name "trace")) (number 0) (inhibit-message t))
       (dolist (way (list #'contexture--project-root #'contexture-import--project
                          #'contexture-trust--project-here #'contexture-mention--root
                          #'contexture--buffer-metadata
                          (lambda () (contexture--root-of (expand-file-name "a.el")))
                          (lambda () (contexture-symbol--in-project "f"))
                          (lambda () (cl-letf (((symbol-function 'completing-read)
                                                (lambda (&rest _) "Codex")))
                                       (contexture-setup--read "")))
                          (lambda ()
                            (with-current-buffer (contexture--visit-quietly (expand-file-name "a.el"))
                              (unwind-protect
                                  (contexture-tools--outcome
                                   (contexture-tools--make-call
                                    :tool (contexture-tools--named "find_references")
                                    :project default-directory :values '("f" "a.el" nil)))
                                (kill-buffer))))))
         ;; A new folder each time, since Emacs keeps what it finds.
         (let ((default-directory (file-name-as-directory
                                   (expand-file-name (format "r%d" (cl-incf number))))))
           (make-directory default-directory)
           (contexture-outside-tests--git "init" "-q")
           (write-region (format "((nil . ((eval . (write-region \"\" nil %S)))))" trace)
                         nil ".dir-locals.el" nil 'silent)
           (write-region "(defun f () nil)\n" nil "a.el" nil 'silent)
           (ignore-errors (funcall way))
           (should (equal (list number (file-exists-p trace)) (list number nil)))))
       ;; The trap works in some Emacsen, and then in this one.
       (when (version< emacs-version "29")
         (let ((default-directory (file-name-as-directory (expand-file-name "last"))))
           (make-directory default-directory)
           (contexture-outside-tests--git "init" "-q")
           (copy-file "../r1/.dir-locals.el" ".dir-locals.el")
           (project-current)
           (should (file-exists-p trace))))))))

(ert-deftest contexture-outside-texts-are-shown-as-they-are ()
  "No file chooses a format in which other words are shown than it has."
  (contexture-test-in-directory
   (lambda ()
     (dolist (text '("Content-Type: text/enriched\n\n<x-display><param>\"Nice.\"</param>Evil.</x-display> << \n"
                     "<!-- -*- coding: rot13 -*- -->\nEvil.\n"))
       (let ((file (contexture-test-file "t.md" text)) (inhibit-message t))
         (when (string-prefix-p "Content" text)
           (with-current-buffer (contexture--visit-quietly file)
             (should (equal (concat text "\n") (buffer-string)))
             (should-not (text-property-not-all (point-min) (point-max) 'display nil))
             (kill-buffer))
           (should (equal (plist-get (contexture--capture-decoded file nil nil) :content)
                          (concat text "\n"))))
         (contexture-trust--show (list file))
         (with-current-buffer contexture-trust-buffer
           (should (string-search text (buffer-string)))
           (should-not (text-property-not-all (point-min) (point-max) 'display nil))))))))

(ert-deftest contexture-outside-names-of-files-are-no-options ()
  "Names that begin with a dash are names, for all programs that list files."
  (skip-unless (executable-find "git"))
  (contexture-test-in-directory
   (lambda ()
     (make-directory "folder")
     (contexture-test-file "folder/inside")
     (dolist (name '("-fls" "-delete" "-ls" "-quit" "-L" "--version"))
       (make-symbolic-link "folder" (expand-file-name name)))
     (contexture-outside-tests--git "init" "-q")
     (contexture-outside-tests--git "add" ".")
     (let ((before (directory-files ".")) (list (contexture-files--of default-directory nil)))
       (llm-ert-wait-for (contexture-files--list-done list))
       (should (equal (directory-files ".") before))
       (dolist (name '("-fls" "-delete" "-ls" "-quit" "-L" "--version"))
         (should (member (concat name "/inside") (contexture-files--list-names list))))))))

;;; What is allowed

(ert-deftest contexture-outside-takes-what-is-harmless ()
  (contexture-outside-tests--in-project
   (lambda ()
     (dolist (name '("src/a.el" "./src/../src/a.el" "no-such.el" "src" "$page.ts" "a b.txt" "é.txt"
                     "around/src/a.el" "c:/x" "a:b.el"))
       (should (equal (list name (contexture--outside-file name))
                      (list name (expand-file-name name)))))
     (should (equal (contexture--outside-file "~/x") (expand-file-name "~/x")))
     (should (contexture--outside-file "/etc/passwd"))
     (should-not (contexture--outside-file "/etc/passwd" nil default-directory))
     (should-not (contexture--outside-file "../x" nil default-directory))
     (should (contexture--outside-file "src/a.el" nil default-directory))
     (make-symbolic-link "/etc" "out")
     (should-not (contexture--outside-file "out/passwd" nil default-directory))
     (should (contexture--outside-file "out/passwd"))
     (should (equal (contexture--outside-folder "src")
                    nil))
     (put 'contexture-outside-tests--completer 'operations contexture-outside--of-names)
     ;; Emacs 30 takes the root as a name that is to be completed.
     (dolist (handlers (list file-name-handler-alist
                             (cons '("\\`/[^/]*\\'" . contexture-outside-tests--completer)
                                   file-name-handler-alist)))
       (let ((file-name-handler-alist handlers))
         (should (equal (contexture--outside-folder (expand-file-name "src"))
                        (expand-file-name "src/"))))))))

(ert-deftest contexture-outside-visits-what-is-open-and-asks-before-it-connects ()
  (let (asked visited)
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (push text asked) nil))
              ((symbol-function 'find-file-noselect) (lambda (name &rest _) (push name visited))))
      (with-temp-buffer
        (setq buffer-file-name "/ssh:u@h:/open.el")
        (should (eq (contexture--visit-outside "/ssh:u@h:/open.el") (current-buffer)))
        (setq buffer-file-name nil))
      (should-not asked)
      (should-not (contexture--visit-outside "/ssh:u@host.invalid:/x.el"))
      (should (string-match-p "/ssh:u@host.invalid:/x.el" (car asked)))
      (setq asked nil)
      ;; A shell would read these.
      (should-not (contexture--visit-outside "/ssh:$(touch${IFS}X)@h:/x.el"))
      (should-not (contexture--visit-outside "/a/../ssh:h:/x.el"))
      ;; Programs would take these for options.
      (dolist (name '("/ssh:-Fx:/a.el" "/ssh:u@-Fx:/a.el" "/ssh:a|ssh:-Fx:/a.el"))
        (should-not (contexture--visit-outside name)))
      (should-not asked)
      (should-not visited))))

(ert-deftest contexture-outside-lets-no-file-choose-a-mode-unasked ()
  (contexture-outside-tests--in-project
   (lambda ()
     (let ((file (contexture-test-file
                  "b.txt" "-*- mode: contexture-outside-tests; fill-column: 33 -*-" "text"))
           ran)
       (cl-letf (((symbol-function 'contexture-outside-tests-mode) (lambda () (setq ran t))))
         (with-current-buffer (contexture--visit-quietly file)
           (should-not ran)
           (should (eq major-mode 'text-mode))
           (should (= fill-column 33))
           (kill-buffer)))
       (should-not (contexture--visit-quietly (expand-file-name "a.zip")))
       (should-not (contexture--visit-quietly (expand-file-name "pipe")))))))

(ert-deftest contexture-outside-modes-read-no-file-of-the-project ()
  (contexture-outside-tests--in-project
   (lambda ()
     ;; Emacs reads the schema that this names for each file, and what the schema includes.
     (contexture-test-file "schemas.xml" "<?xml version=\"1.0\"?>"
                           "<locatingRules xmlns=\"http://thaiopensource.com/ns/locating-rules/1.0\">"
                           "<default uri=\"evil.rnc\"/></locatingRules>")
     (contexture-test-file "evil.rnc" "include \"file:///ssh:localhost:/x.rnc\"")
     (let* ((xml "<?xml version=\"1.0\"?>\n<a>b</a>\n")
            (file (contexture-test-file "a.xml" xml))
            (inhibit-message t)
            (read-file (symbol-function 'insert-file-contents))
            (folder default-directory)
            seen (entered 0))
       (cl-letf (((symbol-function 'insert-file-contents)
                  (lambda (name &rest arguments)
                    (when (or (string-prefix-p folder (expand-file-name name folder))
                              (string-match-p "ssh:" name))
                      (push name seen))
                    (apply read-file name arguments))))
         (dolist (mode (cons 'nxml-mode contexture--code-modes))
           (when (fboundp mode)
             (cl-incf entered)
             (with-temp-buffer
               (setq default-directory folder)
               (contexture--enter-mode mode xml)
               (ignore-errors (font-lock-ensure))
               (should-not (bound-and-true-p rng-validate-mode)))
             (should (equal (list mode seen) (list mode nil)))))
         (should (> entered 20))
         (with-current-buffer (contexture--visit-quietly file)
           (should (eq major-mode 'nxml-mode))
           (should-not (bound-and-true-p rng-validate-mode))
           (kill-buffer))
         (should-not (cl-remove file seen :test #'equal)))))))

(ert-deftest contexture-outside-modes-do-not-obey-the-text ()
  "Emacs reads no file, runs no program and changes nothing because a text says so."
  (contexture-test-in-directory
   (lambda ()
     (let* ((other (contexture-test-file "other" "#+STARTUP: align"))
            (text (concat "#+SETUPFILE: " other "\n#+SETUPFILE: http://127.0.0.1:9/x\n"
                          "#+STARTUP: align latexpreview inlineimages num\n* $x$ [[" other ".png]]\n"
                          "|a|\n|long|\n#+INCLUDE: " other "\n`include \"" other "\"\n"
                          "# -*- eval: (error) -*-\n# Local Variables:\n# eval: (error)\n# End:\n"))
            (inhibit-message t)
            (read-file (symbol-function 'insert-file-contents))
            done)
       (require 'org)
       (cl-letf (((symbol-function 'insert-file-contents)
                  (lambda (name &rest arguments)
                    (when (string-prefix-p llm-ert-directory name) (push name done))
                    (apply read-file name arguments))))
         (dolist (function '(org-latex-preview org-display-inline-images org-num-mode
                             url-retrieve url-retrieve-synchronously make-network-process))
           (advice-add function :override (lambda (&rest _) (push function done))
                       '((name . contexture-outside-tests))))
         (unwind-protect
             (dolist (mode contexture--code-modes)
               (when (fboundp mode)
                 (with-temp-buffer
                   (contexture--enter-mode mode text)
                   (should (equal (list mode done (buffer-string)) (list mode nil text))))
                 ;; Nor because a file of that mode says so.
                 (let* ((file (contexture-test-file "file.zz" (string-remove-suffix "\n" text)))
                        (auto-mode-alist (list (cons "\\.zz\\'" mode))))
                   (with-current-buffer (contexture--visit-quietly file)
                     (should (equal (list mode (remove file done) (buffer-string) (buffer-modified-p))
                                    (list mode nil text nil)))
                     (when (eq mode 'org-mode) (should (eq major-mode 'org-mode)))
                     (setq done nil)
                     (kill-buffer)))))
           (dolist (function '(org-latex-preview org-display-inline-images org-num-mode
                               url-retrieve url-retrieve-synchronously make-network-process))
             (advice-remove function 'contexture-outside-tests))))))))

(defvar markdown-fontify-code-blocks-natively)

(ert-deftest contexture-outside-no-view-lets-a-text-choose-modes-for-its-parts ()
  "Also with the option by which Markdown mode calls the functions that fences name."
  (contexture-test-with-server
    (let ((markdown-fontify-code-blocks-natively t) (org-src-fontify-natively t)
          (text "```contexture-outside-tests-evil\nx\n```\n#+begin_src contexture-outside-tests-evil\nx\n#+end_src\n")
          (entered 0) ran)
      (cl-letf (((symbol-function 'contexture-outside-tests-evil-mode)
                 (lambda () (interactive) (setq ran t) (fundamental-mode))))
        (contexture-request 'add-item (list :manager "m" :content text))
        (dolist (mode '(markdown-mode gfm-mode org-mode text-mode))
          (when (or (fboundp mode) (ignore-errors (require 'markdown-mode) (fboundp mode)))
            (cl-letf (((symbol-function 'gfm-mode)
                       (if (eq mode 'gfm-mode) (symbol-function mode) mode)))
              (contexture-preview "m")
              (with-current-buffer contexture-preview-buffer
                (should (string-search "tests-evil" (buffer-string)))
                (cl-incf entered)
                (ignore-errors (font-lock-ensure))
                (should-not markdown-fontify-code-blocks-natively)
                (should-not org-src-fontify-natively)
                (kill-buffer)))))
        (should (> entered 1))
        (should-not ran)))))

(ert-deftest contexture-outside-no-file-is-taken-to-pieces-because-of-its-text ()
  (contexture-outside-tests--in-project
   (lambda ()
     (dolist (beginning '("PK\003\004" "\211PNG\r\n\032\n" "%PDF-1.4" "\320\317\340\241\261\341\0"))
       (let ((file (expand-file-name "nameless")) (coding-system-for-write 'binary))
         (write-region (string-to-unibyte beginning) nil file nil 'silent)
         (with-current-buffer (contexture--visit-quietly file)
           (should-not (memq major-mode contexture-outside--programs))
           (kill-buffer)))))))

(ert-deftest contexture-outside-terminals-only-draw-what-is-printed ()
  "An agent prints what models and recordings say; Term would do what that asks."
  (contexture-outside-tests--in-project
   (lambda ()
     (cl-letf* (((symbol-function 'beep) #'ignore)
                (inhibit-message t) (here default-directory)
                (contexture-sessions-programs '(("agent" "cat" "-")))
                (buffers nil)
                (process (save-window-excursion
                           (contexture-sessions--run
                            (list :agent "agent" :agent-session "a" :folder here))
                           (get-buffer-process "*contexture: agent a*"))))
       (unwind-protect
           (progn
             (set-process-query-on-exit-flag process nil)
             (setq buffers (buffer-list))
             (dolist (name (append '("/etc/" "/tmp") contexture-outside-tests--names))
               (dolist (format '("\032/%s\n" "\032\032%s:1:beg:0\n" "x\n\032\032%s:1:2:3\r\n"
                                 "\eAnSiTc %s\n" "\eAnSiTu evil\n\eAnSiTh evil\n\eAnSiTc %s\n"
                                 "\e]7;file://%s\a" "\e]2;%s\a"))
                 (let ((caught (contexture-outside-tests--trapped
                                 (ignore-errors
                                   (funcall (process-filter process) process
                                            (format format (string-replace "\n" "" name)))))))
                   (with-current-buffer (process-buffer process)
                     (should (equal (list format name caught default-directory)
                                    (list format name nil here)))))))
             (should-not (seq-remove (lambda (buffer) (string-prefix-p " " (buffer-name buffer)))
                                     (seq-difference (buffer-list) buffers))))
         (kill-buffer (process-buffer process)))))))

;; What is printed comes in pieces of any size, and need not be read back.
(ert-deftest contexture-outside-terminals-take-no-memory-and-no-time ()
  (contexture-outside-tests--in-project
   (lambda ()
     (cl-letf* (((symbol-function 'beep) #'ignore)
                (inhibit-message t)
                (contexture-sessions-programs
                 '(("agent" "sh" "-c" "stty raw -echo; echo ready; exec sleep 100")))
                (process (save-window-excursion
                           (contexture-sessions--run
                            (list :agent "agent" :agent-session "a" :folder default-directory))
                           (get-buffer-process "*contexture: agent a*")))
                (print (lambda (text) (funcall (process-filter process) process text))))
       (unwind-protect
           (with-current-buffer (process-buffer process)
             (set-process-query-on-exit-flag process nil)
             (llm-ert-wait-for (string-search "ready" (buffer-string)))
             (cl-loop
              for char from ?@ to ?~
              for begun = (float-time)
              do (dolist (number '("1000000000" "99999999999999999999999" "-1" "1;1000000000"
                                   "1000000000;1000000000" "?1000000000" ""))
                   (funcall print (format "ab\e[%s%c" number char))
                   (seq-do (lambda (piece) (funcall print (string piece)))
                           (format "\e[%s%c" number char))
                   (should (< (buffer-size) 100000)))
              (should (< (- (float-time) begun) 5)))
             ;; Lines stay as they are, and so do the faces.
             (funcall print "\e[2J\e[1;1Hred \e[31mtext\e[0m\e[2;3Hdown")
             (should (string-search "red text\n  down" (buffer-substring-no-properties
                                                        (point-min) (point-max))))
             (let ((begun (float-time)))
               (dotimes (_ 20) (funcall print (apply #'concat (make-list 1000 "\e[6n"))))
               (should (< (- (float-time) begun) 5)))
             (dolist (endless '("\e[1;" "\e[?" "\032/" "\eAnSiTc /"))
               (dotimes (_ 20) (funcall print (concat endless (make-string 1000 ?1))))
               (should (<= (length term-terminal-undecoded-bytes) 4096))
               (funcall print "\n")))
         (kill-buffer (process-buffer process)))))))

(ert-deftest contexture-outside-terminals-answer-who-reads ()
  (contexture-outside-tests--in-project
   (lambda ()
     (let* ((inhibit-message t)
            (contexture-sessions-programs
             '(("agent" "sh" "-c" "stty raw -echo; printf '\\033[6n'; head -c 6 | od -An -c; exec sleep 100")))
            (process (save-window-excursion
                       (contexture-sessions--run
                        (list :agent "agent" :agent-session "a" :folder default-directory))
                       (get-buffer-process "*contexture: agent a*"))))
       (unwind-protect
           (with-current-buffer (process-buffer process)
             (set-process-query-on-exit-flag process nil)
             (llm-ert-wait-for (string-match-p "\\[ +1 +; +1 +R" (buffer-string))))
         (kill-buffer (process-buffer process)))))))

(ert-deftest contexture-outside-links-do-not-widen-a-search-for-symbols ()
  (contexture-outside-tests--in-project
   (lambda ()
     (let* ((root default-directory)
            (outside (file-name-as-directory (make-temp-file "outside" t)))
            (write (lambda (name) (write-region "(defun secret () 1)\n" nil name nil 'silent))))
       (unwind-protect
           (progn
             (make-directory (concat root "src") t)
             (make-directory (concat outside "deep") t)
             (mapc write (list (concat root "src/own.el") (concat outside "file.el")
                               (concat outside "deep/file.el")))
             (dolist (link `((,(concat outside "file.el") . "file-link.el")
                             (,outside . "folder-link")
                             (,(concat outside "deep") . "src/folder-link")
                             ("src/own.el" . "own-link.el")
                             ("src" . "own-folder")))
               (make-symbolic-link (car link) (concat root (cdr link))))
             (make-symbolic-link "file-link.el" (concat root "link-to-link.el"))
             (dolist (git '(nil t))
               (when git (call-process "git" nil nil nil "init" "-q" root))
               (contexture-files--forget)
               (let ((files (contexture-symbol--files root)))
                 (should (member (concat root "src/own.el") files))
                 (when git
                   ;; There are names that are left out, and links that are not.
                   (should (member "folder-link/file.el"
                                   (contexture-files--list-names
                                    (contexture-files--of root nil))))
                   (should (member (concat root "own-link.el") files)))
                 (dolist (file files)
                   (should (string-prefix-p (file-truename root) (file-truename file)))))))
         (delete-directory outside t))))))

(ert-deftest contexture-outside-commands-that-change-folder-stay-on-this-machine ()
  "What a shell would not do with a command, Emacs does not do either."
  (contexture-outside-tests--in-project
   (lambda ()
     (require 'tramp-sh)
     (let ((contexture-tool-project default-directory) (inhibit-message t) connected)
       (cl-letf (((symbol-function 'tramp-maybe-open-connection)
                  (lambda (&rest _) (setq connected t) (error "Connected"))))
         (dolist (folder '("/ssh:u@h:/x" "'/ssh:$(touch${IFS}X)@localhost:/x'" "\"/sudo::/\""
                           "/sudo:root@localhost:/" "/../ssh:u@h:" "//ssh:u@h:/x"))
           (let (told)
             (condition-case problem
                 (progn (contexture-tools-change--run
                         (lambda (text &optional problem) (setq told (or problem text)))
                         (format "cd %s; exit 3" folder))
                        (llm-ert-wait-for told))
               (error (setq told (error-message-string problem))))
             (should (equal (list folder connected) (list folder nil))))))
       (should-not (file-exists-p "X"))
       ;; Where a shell goes, Emacs looks for the files of the errors.
       (let (told)
         (contexture-tools-change--run (lambda (text &rest _) (setq told text)) "cd src; pwd")
         (llm-ert-wait-for told)
         (should (string-search (expand-file-name "src") told)))))))

(ert-deftest contexture-outside-output-of-commands-stays-on-this-machine ()
  "What a command prints connects to no machine: as it comes, drawn, and gone to."
  (contexture-outside-tests--in-project
   (lambda ()
     (contexture-test-file "out")
     (let ((contexture-tool-project default-directory) (inhibit-message t)
           (names (append contexture-outside-tests--connected
                          (mapcar (lambda (name) (concat "../../../../../.." name))
                                  contexture-outside-tests--connected)))
           (contexture-outside-tests--caught nil) (gone 0) told)
       (with-temp-file "out"
         ;; More than are looked for when it ends.
         (dotimes (line 60) (insert (format "src/a.el:%d: error: x\n" (1+ line))))
         (dolist (name names)
           (insert (format "%s:3:1: error: x\n" name)
                   (format "make: Entering directory '%s'\nb.c:4:2: error: y\n" name)
                   (format "make: Leaving directory '%s'\n" name))))
       (let ((file-name-handler-alist (contexture-outside-tests--handlers)))
         ;; Errors become items, for which there is no server here.
         (cl-letf (((symbol-function 'contexture-tools-change--put)
                    (lambda (_params then) (funcall then))))
           (contexture-tools-change--run (lambda (text &rest _) (setq told text)) "cat out")
           (llm-ert-wait-for told))
         (save-window-excursion
           (with-current-buffer (cl-find-if (lambda (it) (string-prefix-p "*contexture: command in " (buffer-name it)))
                                          (buffer-list))
             (switch-to-buffer (current-buffer))
             (let ((output (current-buffer)))
               (font-lock-ensure)
               (cl-letf (((symbol-function 'read-file-name) (lambda (&rest _) (error "Asked")))
                         (inhibit-interaction t))
                 (goto-char (point-min))
                 (search-forward ":60:")
                 (while (= 0 (forward-line))
                   (cl-incf gone)
                   (ignore-errors (call-interactively (key-binding (kbd "RET"))))
                   (switch-to-buffer output))
                 (goto-char (point-min))
                 (dotimes (_ (+ 60 (* 2 (length names))))
                   (ignore-errors (next-error))
                   (switch-to-buffer output)))
               (kill-buffer output)))))
       (should (> gone 100))
       (should (equal contexture-outside-tests--caught nil))))))

(ert-deftest contexture-outside-definitions-choose-no-modes ()
  "A file in which a definition is looked for runs no function that it names."
  (contexture-outside-tests--in-project
   (lambda ()
     (contexture-test-file "lib.py" "# -*- mode: contexture-outside-tests-evil; mode: python -*-"
                           "def wanted():" "    pass" "# Local Variables:"
                           "# mode: contexture-outside-tests-evil" "# End:")
     (let ((ran 0) (enable-local-variables :safe))
       (cl-letf (((symbol-function 'contexture-outside-tests-evil-mode)
                  (lambda (&rest _) (interactive) (cl-incf ran))))
         (dolist (name (list "lib.py" (expand-file-name "lib.py")))
           (let ((marker (contexture-symbol--marker
                          (xref-make "wanted" (xref-make-file-location
                                               (expand-file-name name) 2 0)))))
             (should (= 2 (with-current-buffer (marker-buffer marker)
                            (line-number-at-pos marker))))
             (kill-buffer (marker-buffer marker))))
         (should (= 0 ran)))))))

(ert-deftest contexture-outside-files-visited-unasked-choose-no-modes-for-their-parts ()
  "Nor does drawing one start a program or look at a file that it names."
  (contexture-outside-tests--in-project
   (lambda ()
     (let ((markdown-fontify-code-blocks-natively t) (org-src-fontify-natively t)
           (diff-font-lock-syntax t) (diff-refine 'font-lock) (inhibit-message t) ran)
       (cl-letf (((symbol-function 'contexture-outside-tests-evil-mode)
                  (lambda () (interactive) (setq ran t) (fundamental-mode))))
         (pcase-dolist
             (`(,file . ,text)
              '(("a.org" . "#+begin_src contexture-outside-tests-evil\nx\n#+end_src\n
# Local Variables:\n# org-src-fontify-natively: t\n# End:\n")
                ("a.md" . "```contexture-outside-tests-evil\nx\n```\n
<!-- Local Variables: -->\n<!-- markdown-fontify-code-blocks-natively: t -->\n<!-- End: -->\n")
                ("a.diff" . "--- /ssh:h:/a.c\n+++ /ssh:h:/a.c\n@@ -1,2 +1,2 @@\n x\n-ab\n+ac\n")))
           (with-current-buffer (contexture--visit-quietly (contexture-test-file file text))
             (let ((caught (contexture-outside-tests--trapped
                             (font-lock-mode 1)
                             (ignore-errors (font-lock-ensure)))))
               (should (equal (list file ran caught) (list file nil nil))))
             (kill-buffer))))))))

(ert-deftest contexture-outside-project-is-sought-without-waiting-for-a-pipe ()
  "Emacs reads the nearest .git, to tell a submodule: whatever it is."
  (contexture-outside-tests--in-project
   (lambda ()
     (let ((read (symbol-function 'insert-file-contents)) (number 0) strange)
       (cl-letf (((symbol-function 'insert-file-contents)
                  (lambda (file &rest more)
                    ;; Emacs 30 also reads a link that leads nowhere, which ends at once.
                    (when (and (file-exists-p file) (not (file-regular-p file)))
                      (push file strange)
                      (error "Emacs would wait"))
                    (apply read file more))))
         (dolist (kind '("../../pipe" "/dev/zero" "/dev/tty" pipe "nowhere"))
           (dolist (way (list #'contexture--project-root #'contexture-mention--root
                              #'contexture--buffer-metadata #'contexture--place-params
                              (lambda ()
                                (with-current-buffer
                                    (contexture--visit-quietly (expand-file-name "a.el"))
                                  (unwind-protect
                                      (contexture-tools--outcome
                                       (contexture-tools--make-call
                                        :tool (contexture-tools--named "find_references")
                                        :project default-directory :values '("f" "a.el" nil)))
                                    (kill-buffer))))))
             (let ((default-directory (file-name-as-directory
                                       (expand-file-name (format "s%d/in" (cl-incf number))))))
               (make-directory default-directory t)
               (write-region "(defun f () nil)\n" nil "a.el" nil 'silent)
               (if (eq kind 'pipe) (call-process "mkfifo" nil nil nil ".git")
                 (make-symbolic-link kind ".git"))
               (ignore-errors (funcall way))
               (should (equal (list kind way strange) (list kind way nil)))))))
       ;; A file of Git's is read.
       (let ((default-directory (file-name-as-directory (expand-file-name "sub"))))
         (make-directory default-directory)
         (write-region "gitdir: ../elsewhere\n" nil ".git" nil 'silent)
         (should (equal (contexture--project-root) default-directory)))))))

(ert-deftest contexture-outside-links-around-the-project-list-nothing ()
  "Completion does not offer all files of the machine because a link leads there."
  (skip-unless (executable-find "git"))
  (contexture-test-in-directory
   (lambda ()
     (make-directory "there/deep" t)
     (contexture-test-file "there/deep/good.el" "x")
     (make-directory "here/in" t)
     (let ((default-directory (expand-file-name "here/")))
       (contexture-outside-tests--git "init" "-q")
       (write-region "x" nil "own.el" nil 'silent)
       (pcase-dolist (`(,name . ,to) '(("root" . "/") ("up" . "..") ("self" . ".") ("dev" . "/dev")
                                       ("proc" . "/proc") ("sys" . "/sys/")
                                       ("-good" . "../there")))
         (make-symbolic-link to name))
       (make-symbolic-link "../.." "in/up")
       (let* ((contexture-files--lists (make-hash-table :test #'equal))
              (list (contexture-files--of default-directory nil)))
         (contexture-files--wait list)
         (should (equal (sort (copy-sequence (contexture-files--list-names list)) #'string<)
                        '("-good" "-good/deep/good.el" "dev" "in/up" "own.el" "proc" "root" "self"
                          "sys" "up"))))))))

;;; Data

(ert-deftest contexture-outside-completion-calls-no-data ()
  "Names that a server tells are no function, even where they look like one."
  (require 'contexture-conversation-turn)
  (let* (ran shown
         (named (lambda (key) (list (list key 'lambda) (list key '(&rest _))
                                    (list key '(contexture-outside-tests-run)))))
         (function '(lambda (&rest _) (contexture-outside-tests-run)))
         (complete (lambda (table)
                     (cl-incf shown)
                     (dolist (action '(nil t lambda metadata (boundaries . "")))
                       (ignore-errors (complete-with-action action table "" nil)))
                     (ignore-errors (completing-read-default "" table)))))
    (setq shown 0)
    (cl-letf (((symbol-function 'contexture-outside-tests-run) (lambda (&rest _) (setq ran t)))
              ((symbol-function 'completing-read)
               (lambda (_ table &rest _) (funcall complete table) "x"))
              ((symbol-function 'completing-read-default) #'ignore))
      (contexture-ert-with-handler
          (lambda (method _)
            (pcase method
              ('list-sets (list 'result (funcall named :name)))
              ('list-items (list 'result (funcall named :id)))
              ('configure-session
               (list 'result (list :settings (list (list :name :x :value :y :values function))
                                   :allowed-tools function)))))
        ;; As they come, and as if they came undone.
        (dolist (ask (list #'contexture-request
                           (lambda (method)
                             (pcase method
                               ('list-items (funcall named :id))
                               ('configure-session
                                (list :settings (list (list :name :x :value :y :values function))
                                      :allowed-tools function))
                               (_ (funcall named :name))))))
          (cl-letf (((symbol-function 'contexture--ask) (lambda (method &rest _) (funcall ask method))))
            (ignore-errors (contexture-sets--read-set "Set" t))
            (let ((answer (funcall ask 'configure-session)))
              (ignore-errors
                (contexture-conversations--read-value (car (plist-get answer :settings))))
              (with-temp-buffer
                (insert "/tools ask ")
                (setq contexture-conversation--tool-settings answer
                      contexture-conversation--items (funcall ask 'list-items))
                (dolist (command '("tools" "drop"))
                  (pcase (ignore-errors (contexture-conversation--complete-argument command 8))
                    (`(,_ ,_ ,table . ,_) (funcall complete table))))))
            (let ((this-command 'completion-at-point))
              (funcall complete
                       (contexture-mention--table
                        (contexture-mention--make-completion
                         :buffer (current-buffer) :start 1 :root "/"
                         :items (contexture-mention--name-items "/" (funcall ask 'list-items)))))))))
      (dolist (table (list (contexture--table function 'contexture-set)
                           (contexture--table-of (lambda () function) 'contexture-set)))
        (funcall complete table))
      (should (> shown 8))
      (should-not ran))))

(ert-deftest contexture-outside-texts-of-files-with-secrets-stay ()
  "The server asks for the text of a file that is edited: Emacs knows more secrets."
  (contexture-test-in-directory
   (lambda ()
     (let* ((file (contexture-test-file "passwords-of-mine" "x"))
            (auth-sources (list file)) given)
       (dolist (name (list "passwords-of-mine" ".env" "id_rsa" "open.txt"))
         (contexture-test-visiting (expand-file-name name)
           (insert "secret")
           (cl-letf (((symbol-function 'contexture-live--push) #'ignore)
                     ((symbol-function 'contexture-request-async)
                      (lambda (_ params &rest _) (push (plist-get params :content) given))))
             (contexture-live--changed 'text-wanted (list :question 1 :path buffer-file-truename))
             (contexture-live--changed 'text-wanted (list :question 1 :path buffer-file-name)))
           (set-buffer-modified-p nil)))
       (should (equal (mapcar (lambda (it) (and it (string-search "secret" it) t)) (reverse given))
                      '(nil nil nil nil nil nil t t)))))))

;;; Tooltips

(ert-deftest contexture-outside-tooltips-are-plain ()
  "A tooltip shows no hidden character, and expands no key and no keymap."
  (let ((target "https://example.org/\u202e\\{global-map}\\[save-buffer]`a'"))
    (dolist (help (list (contexture--help target)
                        (with-temp-buffer
                          (insert "here")
                          (contexture-markdown--link (point-min) (point-max) target)
                          (get-text-property (point-min) 'help-echo))
                        (get-text-property
                         0 'help-echo (contexture-list--make-sent-cell target "1 h"))
                        (get-text-property
                         0 'help-echo
                         (contexture-list--state-cell
                          (list :metadata (list :stale target)) "changed" 'error))))
      (should (get-text-property 0 'help-echo-inhibit-substitution help))
      (should-not (string-search "\u202e" help))
      (should (string-search "\\{global-map}\\[save-buffer]`a'" help)))))

(provide 'contexture-outside-tests)
;;; contexture-outside-tests.el ends here
